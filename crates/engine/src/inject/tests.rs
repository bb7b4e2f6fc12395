use penstock_message::{Body, Form};

use super::*;
use crate::fake;
use crate::{Flow, Mediator, Place, Program, Sequence, SequenceId, Step};

/// Sets a property, faults, or responds.
enum Act {
    Set(&'static str),
    Fault,
    Respond,
}

/// A sequence of the program itself.
fn own(index: u32) -> SequenceId {
    SequenceId { unit: 0, index }
}

impl Mediator for Act {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        match self {
            Act::Set(name) => {
                exchange.message.properties.set(*name, Value::string("true"));
                Ok(Flow::Next)
            }
            Act::Fault => Err(Fault::new("out of stock")),
            Act::Respond => Ok(Flow::Respond),
        }
    }
}

fn sequence(acts: Vec<Act>, on_error: Option<u32>) -> Sequence {
    let step = |act| Step { mediator: Box::new(act), kind: "act", at: Place::default() };
    Sequence { name: None, steps: acts.into_iter().map(step).collect(), on_error: on_error.map(own) }
}

fn program() -> Program {
    let sequences = [
        ("good", sequence(vec![Act::Set("seen")], None)),
        ("undo", sequence(vec![Act::Set("SET_ROLLBACK_ONLY")], None)),
        ("bad", sequence(vec![Act::Fault], None)),
        ("caught", sequence(vec![Act::Fault], Some(0))),
        ("answer", sequence(vec![Act::Respond], None)),
    ];
    let mut program = Program::default();
    for (name, sequence) in sequences {
        program.sequence_names.insert(name.into(), own(program.sequences.len() as u32));
        program.sequences.push(sequence);
    }
    program
}

fn source(on_error: Option<&str>) -> Arc<Source> {
    Arc::new(Source {
        kind: "inboundEndpoint",
        name: "orders".into(),
        label: "{inboundendpoint:orders}".into(),
        transport: "jms",
        on_error: on_error.map(Arc::from),
    })
}

#[test]
fn the_source_learns_how_the_flow_of_its_message_ended() {
    fake::run(async {
        let core = fake::core(program());
        for (name, on_error, expected) in [
            ("good", None, "done"),
            ("undo", None, "rolled back"),
            ("bad", None, "failed: out of stock"),
            ("bad", Some("good"), "done"),
            ("bad", Some("undo"), "rolled back"),
            ("caught", None, "done"),
            ("missing", None, "failed: Sequence: missing not found"),
        ] {
            let message = Message { body: Body::bytes("<order/>"), ..Message::default() };
            let target = InjectTarget::Sequence(name.into());
            let injected = inject(&core, Injection { target, message, source: source(on_error) }).await;
            let outcome = match injected.outcome {
                Outcome::Done => "done".to_owned(),
                Outcome::RolledBack => "rolled back".to_owned(),
                Outcome::Failed(fault) => format!("failed: {}", fault.message),
            };
            assert_eq!(outcome, expected, "{name} with {on_error:?}");
        }
    });
}

#[test]
fn a_response_goes_back_to_the_source() {
    fake::run(async {
        let core = fake::core(program());
        let message = Message { body: Body::bytes("pong"), ..Message::default() };
        let target = InjectTarget::Sequence("answer".into());
        let injected = inject(&core, Injection { target, message, source: source(None) }).await;
        let reply = injected.reply.expect("the flow responds");
        let Form::Bytes(bytes) = reply.body.form() else { panic!("{:?}", reply.body) };
        assert_eq!(bytes, "pong");
        assert!(injected.outcome.is_done());
    });
}
