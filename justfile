# Daily commands: `just` lists them. Needs https://just.systems; each line also works by itself.

# List the commands.
default:
    @just --list

# Compile everything without linking.
check:
    cargo check --workspace --all-targets

# Format, then lint as CI does.
lint:
    cargo fmt --all
    cargo clippy --workspace --all-targets -- -D warnings

# Run all tests, those of databases beside a PostgreSQL.
test:
    tools/with-postgresql cargo test --workspace

# Run the tests of documentation pages; FILTER selects pages.
pages FILTER="":
    cargo test -p penstock-testkit --test pages {{FILTER}}

# Serve the examples.
example *ARGS:
    cargo run -- example {{ARGS}}

# Run the programs that attack the binary, in their short form.
prove:
    cargo build -p penstock-server
    for proof in reload faults hostile soak; do PENSTOCK=target/debug/penstock tools/proof/$proof || exit 1; done

# Run a fuzz target for some seconds: `just fuzz xml 60`.
fuzz TARGET SECONDS="60":
    cd fuzz && cargo run --release -- {{TARGET}} --seconds {{SECONDS}}

# Everything that a change must pass.
ci:
    .ci/run
