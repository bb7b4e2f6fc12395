#!/usr/bin/env bash
# Measures the quick form of the published Micro Integrator matrix on Penstock and on nginx, interleaved, and puts the
# tables with the ratios to the published figures and to nginx into docs/performance.md, between its markers.
#
#   bench/regenerate-performance.sh [ROUNDS]
#
# PENSTOCK names the program; without it a release build is made. Further arguments of the run go into BENCH_ARGS.
set -euo pipefail

cd "$(dirname "$0")/.."
rounds=${1:-3}
page=docs/performance.md
results=${OUT:-penstock-bench/performance-$(date -u +%Y-%m-%d-%H-%M-%S)}

if [ -z "${PENSTOCK:-}" ]; then
    cargo build --release --bin penstock
    PENSTOCK=${CARGO_TARGET_DIR:-target}/release/penstock
fi
if [ ! -f "$page" ]; then
    printf '# Performance\n\n<!-- begin: penstock bench -->\n<!-- end: penstock bench -->\n' >"$page"
fi
# Failed scenarios make the run end with status 1; what was measured is worth a table all the same.
# shellcheck disable=SC2086
"$PENSTOCK" bench run mi-4.5.0 --quick --rounds "$rounds" --peers --target penstock --target nginx \
    --compare published --out "$results" ${BENCH_ARGS:-} || [ $? -eq 1 ]
"$PENSTOCK" bench report "$results" --into "$page"
echo "$page is up to date"
