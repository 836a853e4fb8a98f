
_redlock() {
    local cur words cword
    if declare -F _get_comp_words_by_ref __ltrim_colon_completions >/dev/null; then
        _get_comp_words_by_ref -n : cur words cword
        local COMP_WORDS=("${words[@]}") COMP_CWORD=$cword
        _clap_complete_redlock "$1" "$cur" "$3"
        __ltrim_colon_completions "$cur"
    else
        _clap_complete_redlock "$@"
    fi
}
complete -o nospace -o bashdefault -F _redlock redlock
