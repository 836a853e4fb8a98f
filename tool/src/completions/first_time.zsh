
if [[ $funcstack[1] = _redlock ]]; then
    _clap_dynamic_completer_redlock "$@"
fi
