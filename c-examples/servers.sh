#!/bin/sh
# Servers to try the examples on: three on this machine, each with a plain port and one with TLS.
#
#     sh servers.sh up [DIRECTORY [PORT]]     start them; DIRECTORY (servers) is made for their certificates
#     sh servers.sh down [DIRECTORY]          end them, and remove what up has made
#
# They listen on PORT (6379) and the two after it without TLS, and on PORT + 100 and the two after that
# with it. Their certificates come from an authority that is made for them: DIRECTORY/ca.pem is what
# clients have to trust. For trying things out: there is no password.
#
# down touches nothing but what up has made: a directory with its mark, files by their names, and servers
# that run in that directory.
set -eu

# In every directory that up makes. It has the mark, the port, and the name of the program.
mark_file=.servers.sh
mark='made by servers.sh, which removes it: sh servers.sh down'

main() {
    action=${1:-}
    directory=${2:-servers}
    case $directory in -*) directory=./$directory ;; esac
    case $action,$# in
    up,[123]) up "${3:-6379}" ;;
    down,[12]) down ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
}

up() {
    port=$1 server=${REDIS_SERVER:-redis-server}
    case $port in '' | 0* | *[!0-9]* | ??????*) fail "$port is no port" ;; esac
    [ "$port" -le 65433 ] || fail "$port is no port with 102 after it"
    for tool in "$server" openssl; do
        command -v "$tool" > /dev/null || fail "there is no $tool: install it first"
    done
    if is_marked; then
        fail "$directory is there already: sh $0 down $directory"
    elif [ -e "$directory" ] || [ -L "$directory" ]; then
        fail "$directory is there already, and this script has not made it: name another directory"
    fi
    starting=
    # Whatever ends this before the servers are up: nothing stays.
    trap 'exit 1' HUP INT TERM
    mkdir "$directory" || exit 1
    trap undo EXIT
    printf '%s\n%s\n%s\n' "$mark" "$port" "${server##*/}" > "$directory/$mark_file"
    find_directory
    make_certificates
    for number in 0 1 2; do
        start $((port + number)) $((port + 100 + number)) || fail "a server did not start"
    done
    trap - EXIT HUP INT TERM
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
    starting=$1
    "$server" --bind 127.0.0.1 --port "$1" --tls-port "$2" --dir "$directory" --save '' \
        --tls-cert-file "$directory/server.pem" --tls-key-file "$directory/server.key" \
        --tls-ca-cert-file "$directory/ca.pem" --tls-auth-clients no \
        --daemonize yes --pidfile "$directory/$1.pid" --logfile "$directory/$1.log" > /dev/null \
        || { starting=; return 1; }
    # It says that it is ready, or why it is not.
    tries=0
    until grep -q 'Ready to accept connections' "$directory/$1.log" 2> /dev/null; do
        tries=$((tries + 1))
        if [ $tries -gt 100 ] || grep -q 'Failed' "$directory/$1.log" 2> /dev/null; then
            if grep -q 'Address already in use' "$directory/$1.log" 2> /dev/null; then
                echo "servers.sh: port $1 or $2 is in use (Debian's redis-server runs as a service on 6379);" \
                    "take others: sh $0 up $directory 7000" >&2
            else
                tail -n 3 "$directory/$1.log" >&2
            fi
            return 1
        fi
        sleep 0.1
    done
    starting=
}

# The end of an up that did not come to its end.
undo() {
    trap - EXIT
    trap '' HUP INT TERM
    # A server that has just been started may still have to write down its number. On a busy machine that takes seconds.
    tries=0
    while [ -n "$starting" ] && [ ! -s "$directory/$starting.pid" ] && [ $tries -lt 300 ]; do
        ! grep -q 'Failed\|in use' "$directory/$starting.log" 2> /dev/null || break
        tries=$((tries + 1))
        sleep 0.1
    done
    down > /dev/null
}

down() {
    if [ ! -d "$directory" ]; then
        echo "there is no directory $directory: nothing to do"
        return
    fi
    is_marked || fail "$directory was not made by this script ($mark_file is not in it): it stays as it is"
    find_directory
    port=$(sed -n 2p "$directory/$mark_file") name=$(sed -n 3p "$directory/$mark_file")
    case $port in '' | 0* | *[!0-9]* | ??????*) fail "$directory/$mark_file has no port: all stays as it is" ;; esac
    for number in 0 1 2; do
        end $((port + number))
    done
    (
        cd "$directory"
        rm -f ca.key ca.pem ca.srl server.csr server.ext server.key server.pem openssl.log
        for number in 0 1 2; do
            rm -f "$((port + number)).pid" "$((port + number)).log"
        done
        rm -f "$mark_file"
    )
    rmdir "$directory" 2> /dev/null || echo "$directory has files that this script has not made: they stay"
}

# Ends the server on a port, and waits for that.
end() {
    pid=$(head -n 1 "$directory/$1.pid" 2> /dev/null) || pid=
    tries=0
    while is_ours "$pid"; do
        case $tries in
        0) kill "$pid" 2> /dev/null || : ;;
        30) kill -KILL "$pid" 2> /dev/null || : ;; # it is frozen, or busy with a script
        100) fail "the server with process id $pid does not end: all stays as it is" ;;
        esac
        tries=$((tries + 1))
        sleep 0.1
    done
}

# Whether a process is a server of ours. The number comes from a file that may be old, and by now be
# anybody's: ours has the name of the program, and runs in the directory.
is_ours() {
    case $1 in '' | 0* | 1 | *[!0-9]*) return 1 ;; esac
    case $(name_of "$1") in
    "$(printf %.15s "$name")" | redis-s* | valkey-s*) ;;
    *) return 1 ;;
    esac
    [ "$(directory_of "$1")" = "$directory" ]
}

name_of() {
    if [ -d /proc/self ]; then
        cat "/proc/$1/comm" 2> /dev/null || :
    else
        path=$(ps -o comm= -p "$1" 2> /dev/null) || :
        printf %.15s "${path##*/}"
    fi
}

directory_of() {
    if [ -d /proc/self ]; then
        (CDPATH='' cd -P "/proc/$1/cwd" 2> /dev/null && pwd -P) || :
    else
        lsof -a -p "$1" -d cwd -Fn 2> /dev/null | sed -n 's/^n//p'
    fi
}

# Whether up has made the directory.
is_marked() {
    [ -f "$directory/$mark_file" ] && [ "$(sed -n 1p "$directory/$mark_file")" = "$mark" ]
}

# Its path from the root, without links.
find_directory() {
    directory=$(CDPATH='' cd -P "$directory" && pwd -P)
}

fail() {
    echo "servers.sh: $1" >&2
    exit 1
}

main "$@"
