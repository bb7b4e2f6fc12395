#!/usr/bin/env bash
# Compares `penstock bench url` with wrk on the same target: throughput, percentiles and CPU time of the load side per
# request, in interleaved runs of one thread each. Prints the median over the rounds of each ratio penstock/wrk.
#
#   bench/verify-against-wrk.sh [ROUNDS] [SECONDS]
#
# PENSTOCK names the program (default: penstock). Needs wrk and nginx. Ports 22081 and 22082 by default; set PORT.
set -euo pipefail

rounds=${1:-7}
seconds=${2:-4}
penstock=${PENSTOCK:-penstock}
port=${PORT:-22081}
backend_port=$((port + 1))
connections=${CONNECTIONS:-100}
body_bytes=${BODY_BYTES:-500}
work=$(mktemp -d)
children=()
finish() {
    for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

for program in wrk nginx "$penstock"; do
    command -v "$program" >/dev/null || { echo "error: \`$program\` is not installed" >&2; exit 3; }
done

cat >"$work/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $work/nginx.pid; error_log stderr warn;
events { worker_connections 4096; }
http {
    access_log off; keepalive_requests 1000000000; client_body_buffer_size 256k; proxy_buffers 16 16k;
    client_body_temp_path $work/1; proxy_temp_path $work/2; fastcgi_temp_path $work/3;
    uwsgi_temp_path $work/4; scgi_temp_path $work/5;
    upstream backend { server 127.0.0.1:$backend_port; keepalive 1024; keepalive_requests 1000000000; }
    proxy_http_version 1.1; proxy_set_header Connection "";
    server { listen $port; location / { proxy_pass http://backend; } }
}
CONF
cat >"$work/post.lua" <<LUA
wrk.method = "POST"
wrk.headers["Content-Type"] = "text/plain"
wrk.body = string.rep("x", $body_bytes)
LUA

url=http://127.0.0.1:$port/
nginx -e stderr -c "$work/nginx.conf" 2>"$work/nginx.log" &
children+=($!)

# One line per run: throughput, 50 %, 90 % and 99 % in ms, CPU microseconds of the load side per request.
TIMEFORMAT='%U %S'
run_wrk() {
    { time wrk -t1 -c"$connections" -d"${seconds}s" --latency -s "$work/post.lua" "$url" >"$work/out"; } 2>"$work/cpu"
    awk '
        function ms(text) { if (text ~ /us$/) return text / 1000; if (text ~ /ms$/) return text + 0; return text * 1000 }
        FILENAME ~ /cpu$/ { cpu = $1 + $2; next }
        $1 == "50%" { a = ms($2) } $1 == "90%" { b = ms($2) } $1 == "99%" { c = ms($2) }
        /requests in/ { n = $1 } /Requests\/sec/ { t = $2 }
        END { print t, a, b, c, cpu * 1e6 / n }' "$work/cpu" "$work/out"
}
run_penstock() {
    { time "$penstock" bench url "$url" --users "$connections" --duration "${seconds}s" --warm-up 0s --threads 1 \
        --payload "text:$body_bytes" --csv >"$work/out"; } 2>"$work/cpu"
    awk -F, '
        FILENAME ~ /cpu$/ { split($0, part, " "); cpu = part[1] + part[2]; next }
        !head { for (i = 1; i <= NF; i++) column[$i] = i; head = 1; next }
        { p = "th Percentile of Response Time (ms)"
          print $column["Throughput (Requests/sec)"], $column["50" p], $column["90" p], $column["99" p],
                cpu * 1e6 / $column["# Samples"] }' "$work/cpu" "$work/out"
}
median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

compare() {
    local title=$1 delay=$2 backend
    "$penstock" echo --port "$backend_port" --threads 1 --delay "$delay" 2>"$work/echo.log" &
    backend=$!
    children+=("$backend")
    sleep 0.5
    : >"$work/ratios"
    for round in $(seq "$rounds"); do
        # Take turns: the first program of each round would always meet the machine in the same state.
        if ((round % 2)); then w=$(run_wrk) p=$(run_penstock); else p=$(run_penstock) w=$(run_wrk); fi
        echo "  round $round: wrk $w | penstock $p" >&2
        echo "$w $p" | awk '{ for (i = 1; i <= 5; i++) printf "%s ", $(i + 5) / $i; print "" }' >>"$work/ratios"
    done
    echo "$title: medians over $rounds rounds of penstock/wrk"
    local column=1 name
    for name in "throughput" "50th percentile" "90th percentile" "99th percentile" "load side CPU per request"; do
        printf '  %-26s %.3f\n' "$name" "$(awk -v c=$column '{ print $c }' "$work/ratios" | median)"
        column=$((column + 1))
    done
    kill "$backend" 2>/dev/null || true
    wait "$backend" 2>/dev/null || true
}

compare "$connections connections through nginx, back-end delay 20 ms" 20ms
compare "$connections connections through nginx, no delay" 0ms
