# To be read by the scripts beside it: how one installed file tells where another is.
# shellcheck shell=sh

# Whether $2 lies in $1, and is not that itself.
lies_in() {
    case $2 in
    "${1%/}"/?*) return 0 ;;
    *) return 1 ;;
    esac
}

# What comes after $1 in $2, with a slash in front.
rest_of() {
    printf '%s' "${2#"${1%/}"}"
}

# From $2, which lies in $1, up to that: a step for each part of it, each with a slash in front.
steps_up() {
    rest_of "$1" "$2" | sed 's|/[^/]*|/..|g'
}

# As the right side of sed's s|…|…|.
for_sed() {
    printf '%s' "$1" | sed 's/[\\&|]/\\&/g'
}
