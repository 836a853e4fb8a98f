# Read by the scripts in this directory: relative paths from one installed file to another.
# shellcheck shell=sh

# Whether $2 is inside $1, and is not $1 itself.
lies_in() {
    case $2 in
    "${1%/}"/?*) return 0 ;;
    *) return 1 ;;
    esac
}

# The part of $2 after $1, with a slash in front.
rest_of() {
    printf '%s' "${2#"${1%/}"}"
}

# The way from $2, which is inside $1, up to $1: one /.. for each part.
steps_up() {
    rest_of "$1" "$2" | sed 's|/[^/]*|/..|g'
}

# Escapes text for the right side of sed's s|…|…|.
for_sed() {
    printf '%s' "$1" | sed 's/[\\&|]/\\&/g'
}
