#!/bin/sh
# Servers to try the examples on: three on this machine, each with a plain port and one with TLS.
#
#     sh servers.sh up [DIRECTORY [PORT]]     start them; DIRECTORY (servers) gets their certificates
#     sh servers.sh down [DIRECTORY]          end them, and remove the directory
#
# They listen on PORT (6379) and the two after it without TLS, and on PORT + 100 and the two after that
# with it. Their certificates come from an authority that is made for them: DIRECTORY/ca.pem is what
# clients have to trust. For trying things out: there is no password.
set -eu

action=${1:-}
directory=${2:-servers}
port=${3:-6379}
server=${REDIS_SERVER:-redis-server}

main() {
    case $action in
    up) up ;;
    down) down ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
}

up() {
    for tool in "$server" openssl; do
        command -v "$tool" > /dev/null || fail "there is no $tool: install it first"
    done
    [ ! -e "$directory" ] || fail "$directory is there already: sh $0 down $directory"
    mkdir -p "$directory"
    directory=$(cd "$directory" && pwd)
    make_certificates
    for number in 0 1 2; do
        start $((port + number)) $((port + 100 + number)) || { down; fail "a server did not start"; }
    done
    echo "plain: 127.0.0.1:$port 127.0.0.1:$((port + 1)) 127.0.0.1:$((port + 2))"
    echo "TLS:   rediss://127.0.0.1:$((port + 100)) rediss://127.0.0.1:$((port + 101)) rediss://127.0.0.1:$((port + 102))"
    echo "       trust $directory/ca.pem"
}

# An authority, and one certificate for all three.
make_certificates() {
    (
        cd "$directory"
        key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        # The words of $key are options.
        # shellcheck disable=SC2086
        {
            openssl req -x509 $key -keyout ca.key -out ca.pem -days 7 -subj '/CN=for trying things out'
            openssl req $key -keyout server.key -out server.csr -subj '/CN=localhost'
        } 2> openssl.log
        printf 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1\nbasicConstraints=CA:FALSE\n' > server.ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 7 \
            -extfile server.ext -out server.pem 2>> openssl.log
        rm ca.key
    ) || fail "openssl failed: $(cat "$directory/openssl.log")"
}

start() {
    "$server" --bind 127.0.0.1 --port "$1" --tls-port "$2" --dir "$directory" --save '' \
        --tls-cert-file "$directory/server.pem" --tls-key-file "$directory/server.key" \
        --tls-ca-cert-file "$directory/ca.pem" --tls-auth-clients no \
        --daemonize yes --pidfile "$directory/$1.pid" --logfile "$directory/$1.log" > /dev/null || return 1
    # It says that it is ready, or why it is not.
    tries=0
    until grep -q 'Ready to accept connections' "$directory/$1.log" 2> /dev/null; do
        tries=$((tries + 1))
        if grep -q 'Address already in use' "$directory/$1.log" 2> /dev/null; then
            echo "servers.sh: port $1 or $2 is in use (Debian's redis-server runs as a service on 6379);" \
                "take others: sh $0 up servers 7000" >&2
            return 1
        elif [ $tries -gt 100 ] || grep -q 'Failed' "$directory/$1.log" 2> /dev/null; then
            tail -n 3 "$directory/$1.log" >&2
            return 1
        fi
        sleep 0.1
    done
}

down() {
    for file in "$directory"/*.pid; do
        [ -f "$file" ] || continue
        # It removes the file when it ends.
        pid=$(cat "$file")
        while kill "$pid" 2> /dev/null && [ -f "$file" ]; do
            sleep 0.1
        done
    done
    rm -rf "$directory"
}

fail() {
    echo "servers.sh: $1" >&2
    exit 1
}

main
