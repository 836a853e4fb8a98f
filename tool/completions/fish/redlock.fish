complete --keep-order --exclusive --command redlock --arguments "(REDLOCK_COMPLETE=fish redlock -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
