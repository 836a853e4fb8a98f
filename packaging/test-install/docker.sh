# Checks the image and the services of docs/packages.md, and the nodes of docs/cluster.md, as far as possible without
# Docker's engine. The workflows in .github/workflows run the image and its services.
# shellcheck shell=sh disable=SC2154

check_docker() {
    tools=$(sh packaging/package-tools.sh "$target")
    "$tools/bin/hadolint" packaging/docker/Dockerfile || fail "hadolint has something to say"
    services='packaging/docker/compose.yaml c-examples/cluster/compose.yaml'
    # Two files.
    # shellcheck disable=SC2086
    "$tools/bin/check-jsonschema" --quiet --builtin-schema vendor.compose-spec $services \
        || fail "a compose file is none"
    if docker compose version > /dev/null 2>&1; then
        for file in $services; do
            docker compose -f "$file" config --quiet || fail "docker compose has something to say"
        done
    else
        leave_out "docker compose config: this docker has no compose"
    fi
    check_dockerfile_and_services_agree
    check_what_is_copied
}

# Everything that the compose file names must exist, relative to the compose file.
check_dockerfile_and_services_agree() {
    services=packaging/docker/compose.yaml
    context=packaging/docker/$(sed -n 's/^ *context: //p' $services)
    file=$(sed -n 's/^ *dockerfile: //p' $services)
    [ -f "$context/$file" ] || fail "$services names $file, which is not in $context"
    stage=$(sed -n 's/^ *target: //p' $services)
    grep -q "^FROM .* AS $stage\$" "$context/$file" || fail "$services names the stage $stage, which $file has not"
}

# Copied from the project: the files must exist. Copied from another stage: what `make install` installs, or the
# line that builds an example.
check_what_is_copied() {
    sed -n -e 's/^COPY \(bindings.*\) .*/\1/p' -e 's/.* \(c-examples[^ ]*\).*/\1/p' packaging/docker/Dockerfile | tr ' ' '\n' \
        > "$scratch/copied"
    [ "$(wc -l < "$scratch/copied")" -ge 3 ] || fail "the Dockerfile is not what this reads"
    while read -r file; do
        [ -e "$file" ] || fail "the Dockerfile takes $file, which is not there"
    done < "$scratch/copied"
    compiled=$(sed -n 's/^RUN cc \(.*\) \\$/\1/p' packaging/docker/Dockerfile | sed "s|/installed/usr/local/bin|$scratch|")
    # shellcheck disable=SC2086
    "$cc" $compiled -I"$(installed)/include" -L"$(installed)/lib" -lredlock || fail "what the Dockerfile compiles cannot be"
}
