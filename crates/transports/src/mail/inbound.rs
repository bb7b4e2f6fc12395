//! Proxy services with `transports="mailto"`.

use std::sync::Arc;

use penstock_compile::{Compiler, Feed, ListenerKind, Parameters, ProxyListener};

use super::SCHEME;
use super::account::{Account, Protocol};
use super::address;
use super::mailbox::Action;
use super::poll::{Settings, Source};
use super::received::Retain;
use crate::broker::lookup::Lookup;

/// The transport of proxy services.
pub const LISTENER: ListenerKind = ListenerKind { transport: SCHEME, build };

const ADDRESS: &str = "transport.mail.Address";
const PROTOCOL: &str = "transport.mail.Protocol";

/// Polls of Micro Integrator's client are repeated; here the next poll comes later each time.
const IGNORED: [&str; 3] =
    ["transport.mail.MaxRetryCount", "transport.mail.ReconnectTimeout", "transport.mail.ProcessInParallel"];

fn build(listener: &ProxyListener<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let known = parameters.matching(|name| name.starts_with("mail.") || IGNORED.contains(&name));
    let Some(own_address) = parameters.get(ADDRESS) else {
        let text = format!("`{ADDRESS}` is missing: no mailbox is read, as in Micro Integrator");
        cx.warn(listener.el.place(), text);
        return None;
    };
    let mut is_valid = true;
    let mut wrong = |cx: &mut Compiler<'_>, name: &str, why: String| {
        cx.error(parameters.place(name, &listener.el), why);
        is_valid = false;
    };
    for name in [ADDRESS, "transport.mail.ReplyAddress"] {
        if let Some(Err(why)) = parameters.get(name).map(address::parse_list) {
            wrong(cx, name, format!("the parameter `{name}`: {why}"));
        }
    }
    let word = parameters.get(PROTOCOL).unwrap_or("imap").to_ascii_lowercase();
    let protocol = match word.as_str() {
        "imap" | "imaps" => Some(Protocol::Imap),
        "pop3" | "pop3s" => Some(Protocol::Pop3),
        _ => {
            let why = format!("the parameter `{PROTOCOL}` is none of pop3, pop3s, imap and imaps: `{word}`");
            wrong(cx, PROTOCOL, why);
            None
        }
    };
    let lookup = Lookup::new(&known);
    let account = protocol.and_then(|protocol| match Account::parse(&lookup, protocol, word.ends_with('s')) {
        Ok(account) => Some(account),
        Err(why) => {
            let name = known.iter().find(|(name, _)| why.contains(&**name)).map_or("", |(name, _)| name);
            wrong(cx, name, why);
            None
        }
    });
    let action = |cx: &mut Compiler<'_>, when: &str, missing: Action| {
        let (name, target) = (format!("transport.mail.ActionAfter{when}"), format!("transport.mail.MoveAfter{when}"));
        let folder = parameters.get(&target);
        match parameters.get(&name).map(str::to_ascii_uppercase).as_deref() {
            None => return missing,
            Some("DELETE") => return Action::Delete,
            Some("MOVE") if protocol == Some(Protocol::Pop3) => {
                cx.error(parameters.place(&name, &listener.el), format!("`{name}` is `MOVE`, and POP3 has no folders"));
            }
            Some("MOVE") => match folder {
                Some(folder) => return Action::Move(folder.to_owned()),
                None => {
                    let why = format!("`{name}` is `MOVE`, and the parameter `{target}` is missing");
                    cx.error(parameters.place(&name, &listener.el), why);
                }
            },
            Some(other) => {
                let why = format!("the parameter `{name}` is none of DELETE and MOVE: `{other}`");
                cx.error(parameters.place(&name, &listener.el), why);
            }
        }
        Action::Keep
    };
    let after_process = action(cx, "Process", Action::Delete);
    // Micro Integrator deletes the mail here, too, and it is lost.
    let after_failure = action(cx, "Failure", Action::Keep);
    let names = |name: &str| {
        let text = parameters.get(name)?;
        Some(text.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>())
    };
    let not = names("transport.mail.RemoveHeaders").map_or(Retain::All, Retain::Not);
    let mut account = account.filter(|_| is_valid)?;
    // Without a user JavaMail logs in by the address.
    let user = own_address.split('@').next().unwrap_or_default();
    account.login.get_or_insert_with(|| (user.to_owned(), String::new()));
    let settings = Settings {
        address: own_address.to_owned(),
        folder: parameters.get("transport.mail.Folder").unwrap_or("INBOX").to_owned(),
        content_type: parameters.get("transport.mail.ContentType").map(str::to_owned),
        after_process,
        after_failure,
        reply_address: parameters.get("transport.mail.ReplyAddress").map(str::to_owned),
        retain: names("transport.mail.PreserveHeaders").map_or(not, Retain::Only),
    };
    Some(Feed::Polled(Arc::new(Source { account, settings: Arc::new(settings), consumer: listener.consumer.clone() })))
}
