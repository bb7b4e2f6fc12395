//! `penstock test SUITE…`: runs unit-test suites of Micro Integrator.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::Failure;
use crate::config;
use crate::load::LoadError;
use crate::suite::{self, SuiteOptions};

const AFTER: &str = "\
A suite names artifacts and mock services by their path in a project. They are searched below every folder above the
suite, then by their name in the folders of --artifacts, beside the suite and beside its folder.

Exit status 0 when every case passes, 1 when one fails or an artifact has errors, 3 when a file is missing.";

pub(super) fn command() -> Command {
    let path = |name: &'static str| Arg::new(name).value_parser(clap::value_parser!(PathBuf)).action(ArgAction::Append);
    Command::new("test")
        .about("Runs unit-test suites")
        .after_help(AFTER)
        .arg(path("suite").value_name("SUITE").required(true).help("A suite, or a folder whose suites are run"))
        .arg(path("artifacts").long("artifacts").value_name("DIR").help("Folder with artifacts that suites name"))
        .arg(path("mock").long("mock").value_name("FILE").help("A mock service for every suite, besides its own"))
        .arg(path("report").long("report").value_name("FILE").action(ArgAction::Set).help("Writes JUnit XML there"))
        .arg(
            path("config")
                .long("config")
                .value_name("FILE")
                .action(ArgAction::Set)
                .help("penstock.toml, or a deployment.toml"),
        )
        .arg(Arg::new("only").long("only").value_name("TEXT").help("Only cases whose name contains the text"))
        .arg(
            Arg::new("verbose")
                .long("verbose")
                .short('v')
                .action(ArgAction::SetTrue)
                .help("Shows the log of every case"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let paths = |name: &str| matches.get_many::<PathBuf>(name).into_iter().flatten().cloned().collect::<Vec<_>>();
    let mut suites = Vec::new();
    for path in paths("suite") {
        if path.is_dir() {
            let before = suites.len();
            collect(&path, 0, &mut suites)?;
            if suites.len() == before {
                return Err(Failure::environment(format!(
                    "`{}` holds no suite: none of its files begins with <unit-test>",
                    path.display()
                )));
            }
        } else {
            suites.push(path);
        }
    }
    let surroundings = config::surroundings(&above(&suites));
    let settings = super::run::file_settings(matches.get_one::<PathBuf>("config").cloned(), &[], &surroundings)?;
    let options = SuiteOptions {
        folders: paths("artifacts"),
        mocks: paths("mock"),
        only: matches.get_one::<String>("only").cloned(),
        settings,
        surroundings,
    };
    let mut reports = Vec::with_capacity(suites.len());
    for suite in &suites {
        reports.push(suite::run(suite, &options)?);
    }
    super::print(&suite::terminal(&reports, matches.get_flag("verbose")));
    if let Some(file) = matches.get_one::<PathBuf>("report") {
        std::fs::write(file, suite::junit(&reports))
            .map_err(|cause| Failure::environment(format!("`{}` cannot be written: {cause}", file.display())))?;
    }
    let only_missing =
        reports.iter().all(|report| report.passed() || (!report.missing.is_empty() && report.broken.is_empty()));
    Ok(ExitCode::from(match (reports.iter().all(suite::SuiteReport::passed), only_missing) {
        (true, _) => 0,
        (false, true) => 3,
        (false, false) => 1,
    }))
}

/// Folders above a suite whose `file.properties` and `.env` count: those of its project.
const FOLDERS_ABOVE: usize = 4;

/// The suites' folders and those above them.
fn above(suites: &[PathBuf]) -> Vec<PathBuf> {
    let folders = suites.iter().flat_map(|suite| suite.ancestors().skip(1).take(FOLDERS_ABOVE));
    let mut folders: Vec<PathBuf> =
        folders.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned).collect();
    folders.dedup();
    folders
}

/// Folders inside folders; deeper is a loop of links.
const DEPTH_MAX: usize = 16;

/// The suites of a folder, sorted.
fn collect(folder: &Path, depth: usize, suites: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let cannot = |cause| Failure::from(LoadError { path: folder.to_owned(), cause });
    let entries = std::fs::read_dir(folder).map_err(cannot)?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.') || name == "target");
        if path.is_dir() && !hidden && depth < DEPTH_MAX {
            collect(&path, depth + 1, suites)?;
        } else if path.extension().is_some_and(|ending| ending == "xml")
            && std::fs::read(&path).is_ok_and(|bytes| penstock_xml::root_name(&bytes).as_deref() == Some("unit-test"))
        {
            suites.push(path);
        }
    }
    Ok(())
}
