//! The plan of `penstock bench run` with everything its command line changes.
use super::arguments::{duration, number, text, texts};
use crate::error::Error;
use crate::plan::{Plan, Target, builtin};
use clap::ArgMatches;
use std::path::{Path, PathBuf};

/// The plan with everything the command line changes.
pub fn plan(matches: &ArgMatches) -> Result<(Plan, PathBuf), Error> {
    let name = text(matches, "PLAN").unwrap_or_default();
    let (mut plan, directory) = match builtin::plan(name) {
        Some(plan) => (plan, PathBuf::from(".")),
        None => read_plan(name)?,
    };
    if matches.get_flag("quick") {
        plan.make_quick();
    }
    if matches.get_flag("peers") {
        plan.targets.extend(builtin::peers()?);
    }
    move_ports(&mut plan, matches)?;
    override_timing(&mut plan, matches)?;
    override_matrix(&mut plan, matches)?;
    replace_gateways(&mut plan, matches)?;
    let names: Vec<String> = plan.targets.iter().map(|target| target.name.clone()).collect();
    keep_named(&mut plan.targets, &texts(matches, "target"), &names, "target", |target| &target.name)?;
    let names: Vec<String> = plan.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    keep_named(&mut plan.scenarios, &texts(matches, "scenario"), &names, "scenario", |scenario| &scenario.name)?;
    if matches.get_flag("no-backend") {
        plan.backend = None;
    }
    if let Some(port) = port(matches, "backend-port")?
        && let Some(backend) = &mut plan.backend
    {
        backend.port = port;
    }
    Ok((plan, directory))
}

fn read_plan(name: &str) -> Result<(Plan, PathBuf), Error> {
    let path = Path::new(name);
    if !path.exists() && !name.contains(['/', '.']) {
        let names: Vec<&str> = builtin::names().collect();
        return Err(Error::Usage(format!("no plan `{name}`; there are {}", names.join(", "))));
    }
    let text = std::fs::read_to_string(path).map_err(|error| Error::file(path, &error))?;
    let directory = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    Ok((Plan::parse(name, &text)?, directory))
}

fn override_timing(plan: &mut Plan, matches: &ArgMatches) -> Result<(), Error> {
    let timing = &mut plan.timing;
    let planned = timing.duration;
    timing.duration = duration(matches, "duration")?.unwrap_or(timing.duration);
    timing.warm_up = duration(matches, "warm-up")?.unwrap_or(timing.warm_up);
    timing.ramp_up = match duration(matches, "ramp-up")? {
        Some(given) => given,
        None => timing.scaled_ramp_up(planned),
    };
    if let Some(rounds) = number(matches, "rounds")? {
        timing.rounds = u32::try_from(rounds.max(1)).map_err(|_| Error::Usage("that is too many rounds".to_owned()))?;
    }
    if let Some(rate) = text(matches, "rate") {
        let parsed = rate.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
        timing.rate = Some(parsed.ok_or_else(|| Error::Usage(format!("`--rate {rate}`: `{rate}` is not a rate")))?);
    }
    if timing.warm_up >= timing.duration {
        return Err(Error::Usage("the warm-up must be shorter than the duration, which includes it".to_owned()));
    }
    super::arguments::check_ramp_up(timing.ramp_up, timing.warm_up)
}

fn override_matrix(plan: &mut Plan, matches: &ArgMatches) -> Result<(), Error> {
    let matrix = &mut plan.matrix;
    if let Some(users) = list(matches, "users", |text| text.parse().ok().filter(|users| *users > 0))? {
        matrix.users = users;
    }
    if let Some(sizes) = list(matches, "sizes", crate::payload::parse_size)? {
        matrix.message_bytes = sizes;
    }
    if let Some(delays) = list(matches, "delays", |text| text.parse().ok())? {
        matrix.backend_delay_ms = delays;
    }
    Ok(())
}

fn list<T>(matches: &ArgMatches, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<Vec<T>>, Error> {
    let Some(items) = text(matches, name) else { return Ok(None) };
    let item = |item: &str| {
        parse(item.trim())
            .ok_or_else(|| Error::Usage(format!("`--{name} {items}`: `{item}` is not a value of this list")))
    };
    items.split(',').map(item).collect::<Result<Vec<T>, Error>>().map(Some)
}

fn port(matches: &ArgMatches, name: &str) -> Result<Option<u16>, Error> {
    let narrow =
        |port| u16::try_from(port).map_err(|_| Error::Usage(format!("`--{name} {port}`: a port is at most 65535")));
    number(matches, name)?.map(narrow).transpose()
}

fn move_ports(plan: &mut Plan, matches: &ArgMatches) -> Result<(), Error> {
    for moved in texts(matches, "port") {
        let (name, digits) = moved.split_once('=').map_or((None, moved), |(name, digits)| (Some(name), digits));
        let port = digits.parse().map_err(|_| Error::Usage(format!("`--port {moved}`: `{digits}` is not a port")))?;
        let target = plan.targets.iter_mut().find(|target| name.is_none_or(|name| target.name == name));
        target.ok_or_else(|| Error::Usage(format!("`--port {moved}`: the plan has no such gateway")))?.port = port;
    }
    Ok(())
}

/// `--gateway NAME=URL` replaces the plan's gateway of this name, or all of the plan's own if there is none.
fn replace_gateways(plan: &mut Plan, matches: &ArgMatches) -> Result<(), Error> {
    let pair = |option: &str, text: &str| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Error::Usage(format!("`--{option} {text}`: expected a name, `=` and a value"))),
    };
    let mut given = Vec::new();
    for gateway in texts(matches, "gateway") {
        let (name, url) = pair("gateway", gateway)?;
        crate::http::url::Url::parse(&url).map_err(|error| Error::Usage(error.to_string()))?;
        given.push(Target { name, url, ..Target::default() });
    }
    if !given.is_empty() {
        let peers = matches.get_flag("peers");
        plan.targets.retain(|target| peers && target.optional);
        given.append(&mut plan.targets);
        plan.targets = given;
    }
    for gateway in texts(matches, "gateway-pid") {
        let (name, pid) = pair("gateway-pid", gateway)?;
        let target = plan.targets.iter_mut().find(|target| target.name == name);
        let target = target.ok_or_else(|| Error::Usage(format!("`--gateway-pid {gateway}`: no gateway `{name}`")))?;
        target.pid = Some(
            pid.parse().map_err(|_| Error::Usage(format!("`--gateway-pid {gateway}`: `{pid}` is not a process")))?,
        );
    }
    Ok(())
}

fn keep_named<T>(
    items: &mut Vec<T>,
    wanted: &[&str],
    names: &[String],
    what: &str,
    name_of: impl Fn(&T) -> &String,
) -> Result<(), Error> {
    for name in wanted {
        if !names.iter().any(|other| other == name) {
            let hint = crate::suggest::closest(name, names.iter().map(String::as_str));
            let hint = hint
                .map_or_else(|| format!("there are {}", names.join(", ")), |near| format!("did you mean `{near}`?"));
            return Err(Error::Usage(format!("the plan has no {what} `{name}`; {hint}")));
        }
    }
    if !wanted.is_empty() {
        items.retain(|item| wanted.contains(&name_of(item).as_str()));
    }
    Ok(())
}
