# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_redlock_global_optspecs
    string join \n s/servers= c/config= json v/verbose h/help V/version
end

function __fish_redlock_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_redlock_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_redlock_using_subcommand
    set -l cmd (__fish_redlock_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c redlock -n "__fish_redlock_needs_command" -s s -l servers -d 'Servers: host:port or URLs, separated by commas; can be repeated' -r
complete -c redlock -n "__fish_redlock_needs_command" -s c -l config -d 'Configuration file that names the servers; the default is REDLOCK_SERVERS, then REDLOCK_CONFIG' -r -F
complete -c redlock -n "__fish_redlock_needs_command" -l json -d 'Print JSON: results on standard output, events and failures on standard error'
complete -c redlock -n "__fish_redlock_needs_command" -s v -l verbose -d 'Report more, such as when a lock is taken, and when servers are lost or come back'
complete -c redlock -n "__fish_redlock_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redlock -n "__fish_redlock_needs_command" -s V -l version -d 'Print version'
complete -c redlock -n "__fish_redlock_needs_command" -f -a "run" -d 'Run a program while holding a lock'
complete -c redlock -n "__fish_redlock_needs_command" -f -a "status" -d 'Show for each name whether it is locked, and for how much longer'
complete -c redlock -n "__fish_redlock_needs_command" -f -a "list" -d 'List the locks whose names begin with PREFIX'
complete -c redlock -n "__fish_redlock_needs_command" -f -a "doctor" -d 'Check each server: what it is, what it keeps, its vote or why it has none, and what to do about it'
complete -c redlock -n "__fish_redlock_needs_command" -f -a "top" -d 'Show how many clients wait for each lock, and how often locks change hands'
complete -c redlock -n "__fish_redlock_needs_command" -f -a "bench" -d 'Measure how long locking takes on these servers, and draw the result'
complete -c redlock -n "__fish_redlock_needs_command" -f -a "completions" -d 'Print a script that completes the arguments of this program in a shell'
complete -c redlock -n "__fish_redlock_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c redlock -n "__fish_redlock_using_subcommand run" -s t -l ttl -d 'How long the lock stays on the servers if this machine dies; renewed after each third of that' -r
complete -c redlock -n "__fish_redlock_using_subcommand run" -s w -l wait -d 'How long to wait for the lock: a time, 0 for a single attempt, or forever' -r
complete -c redlock -n "__fish_redlock_using_subcommand run" -l permits -d 'Take one of K permits of the name: up to K programs run at the same time' -r
complete -c redlock -n "__fish_redlock_using_subcommand run" -s E -l conflict-exit-code -d 'Exit with this status if another client holds the lock' -r
complete -c redlock -n "__fish_redlock_using_subcommand run" -l hold-at-least -d 'Keep others out until this time after the lock was taken, also if the program ends before' -r
complete -c redlock -n "__fish_redlock_using_subcommand run" -s s -l servers -d 'Servers: host:port or URLs, separated by commas; can be repeated' -r
complete -c redlock -n "__fish_redlock_using_subcommand run" -s c -l config -d 'Configuration file that names the servers; the default is REDLOCK_SERVERS, then REDLOCK_CONFIG' -r -F
complete -c redlock -n "__fish_redlock_using_subcommand run" -s n -l no-wait -d 'Same as --wait 0'
complete -c redlock -n "__fish_redlock_using_subcommand run" -l shared -d 'Share the lock with other programs that share it; only exclusive holders are kept out'
complete -c redlock -n "__fish_redlock_using_subcommand run" -l no-fencing -d 'Do without a fencing token, and without the right to run scripts that a token needs'
complete -c redlock -n "__fish_redlock_using_subcommand run" -l detach -d 'Hand the lock to the program, which must adopt REDLOCK_TICKET and keep and release the lock'
complete -c redlock -n "__fish_redlock_using_subcommand run" -l adopt -d 'Take over the lock of the ticket in REDLOCK_TICKET instead of acquiring one; no NAME is allowed'
complete -c redlock -n "__fish_redlock_using_subcommand run" -l json -d 'Print JSON: results on standard output, events and failures on standard error'
complete -c redlock -n "__fish_redlock_using_subcommand run" -s v -l verbose -d 'Report more, such as when a lock is taken, and when servers are lost or come back'
complete -c redlock -n "__fish_redlock_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redlock -n "__fish_redlock_using_subcommand run" -s V -l version -d 'Print version'
complete -c redlock -n "__fish_redlock_using_subcommand status" -l permits -d 'The names are semaphores of K permits: show how many are taken; one is locked when all are' -r
complete -c redlock -n "__fish_redlock_using_subcommand status" -s s -l servers -d 'Servers: host:port or URLs, separated by commas; can be repeated' -r
complete -c redlock -n "__fish_redlock_using_subcommand status" -s c -l config -d 'Configuration file that names the servers; the default is REDLOCK_SERVERS, then REDLOCK_CONFIG' -r -F
complete -c redlock -n "__fish_redlock_using_subcommand status" -l json -d 'Print JSON: results on standard output, events and failures on standard error'
complete -c redlock -n "__fish_redlock_using_subcommand status" -s v -l verbose -d 'Report more, such as when a lock is taken, and when servers are lost or come back'
complete -c redlock -n "__fish_redlock_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redlock -n "__fish_redlock_using_subcommand status" -s V -l version -d 'Print version'
complete -c redlock -n "__fish_redlock_using_subcommand list" -s s -l servers -d 'Servers: host:port or URLs, separated by commas; can be repeated' -r
complete -c redlock -n "__fish_redlock_using_subcommand list" -s c -l config -d 'Configuration file that names the servers; the default is REDLOCK_SERVERS, then REDLOCK_CONFIG' -r -F
complete -c redlock -n "__fish_redlock_using_subcommand list" -s a -l all -d 'List also keys on fewer servers than a quorum: left behind, or being acquired'
complete -c redlock -n "__fish_redlock_using_subcommand list" -l json -d 'Print JSON: results on standard output, events and failures on standard error'
complete -c redlock -n "__fish_redlock_using_subcommand list" -s v -l verbose -d 'Report more, such as when a lock is taken, and when servers are lost or come back'
complete -c redlock -n "__fish_redlock_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redlock -n "__fish_redlock_using_subcommand list" -s V -l version -d 'Print version'
complete -c redlock -n "__fish_redlock_using_subcommand doctor" -s s -l servers -d 'Servers: host:port or URLs, separated by commas; can be repeated' -r
complete -c redlock -n "__fish_redlock_using_subcommand doctor" -s c -l config -d 'Configuration file that names the servers; the default is REDLOCK_SERVERS, then REDLOCK_CONFIG' -r -F
complete -c redlock -n "__fish_redlock_using_subcommand doctor" -l json -d 'Print JSON: results on standard output, events and failures on standard error'
complete -c redlock -n "__fish_redlock_using_subcommand doctor" -s v -l verbose -d 'Report more, such as when a lock is taken, and when servers are lost or come back'
complete -c redlock -n "__fish_redlock_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redlock -n "__fish_redlock_using_subcommand doctor" -s V -l version -d 'Print version'
complete -c redlock -n "__fish_redlock_using_subcommand top" -s i -l interval -d 'Time between two updates of the page' -r
complete -c redlock -n "__fish_redlock_using_subcommand top" -s s -l servers -d 'Servers: host:port or URLs, separated by commas; can be repeated' -r
complete -c redlock -n "__fish_redlock_using_subcommand top" -s c -l config -d 'Configuration file that names the servers; the default is REDLOCK_SERVERS, then REDLOCK_CONFIG' -r -F
complete -c redlock -n "__fish_redlock_using_subcommand top" -l once -d 'Print one page, and exit'
complete -c redlock -n "__fish_redlock_using_subcommand top" -l json -d 'Print JSON: results on standard output, events and failures on standard error'
complete -c redlock -n "__fish_redlock_using_subcommand top" -s v -l verbose -d 'Report more, such as when a lock is taken, and when servers are lost or come back'
complete -c redlock -n "__fish_redlock_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redlock -n "__fish_redlock_using_subcommand top" -s V -l version -d 'Print version'
complete -c redlock -n "__fish_redlock_using_subcommand bench" -s d -l duration -d 'Duration of the measurement' -r
complete -c redlock -n "__fish_redlock_using_subcommand bench" -l threads -d 'Number of threads that lock at the same time, each with a name of its own' -r
complete -c redlock -n "__fish_redlock_using_subcommand bench" -s s -l servers -d 'Servers: host:port or URLs, separated by commas; can be repeated' -r
complete -c redlock -n "__fish_redlock_using_subcommand bench" -s c -l config -d 'Configuration file that names the servers; the default is REDLOCK_SERVERS, then REDLOCK_CONFIG' -r -F
complete -c redlock -n "__fish_redlock_using_subcommand bench" -l json -d 'Print JSON: results on standard output, events and failures on standard error'
complete -c redlock -n "__fish_redlock_using_subcommand bench" -s v -l verbose -d 'Report more, such as when a lock is taken, and when servers are lost or come back'
complete -c redlock -n "__fish_redlock_using_subcommand bench" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redlock -n "__fish_redlock_using_subcommand bench" -s V -l version -d 'Print version'
complete -c redlock -n "__fish_redlock_using_subcommand completions" -s s -l servers -d 'Servers: host:port or URLs, separated by commas; can be repeated' -r
complete -c redlock -n "__fish_redlock_using_subcommand completions" -s c -l config -d 'Configuration file that names the servers; the default is REDLOCK_SERVERS, then REDLOCK_CONFIG' -r -F
complete -c redlock -n "__fish_redlock_using_subcommand completions" -l json -d 'Print JSON: results on standard output, events and failures on standard error'
complete -c redlock -n "__fish_redlock_using_subcommand completions" -s v -l verbose -d 'Report more, such as when a lock is taken, and when servers are lost or come back'
complete -c redlock -n "__fish_redlock_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c redlock -n "__fish_redlock_using_subcommand completions" -s V -l version -d 'Print version'
complete -c redlock -n "__fish_redlock_using_subcommand help; and not __fish_seen_subcommand_from run status list doctor top bench completions help" -f -a "run" -d 'Run a program while holding a lock'
complete -c redlock -n "__fish_redlock_using_subcommand help; and not __fish_seen_subcommand_from run status list doctor top bench completions help" -f -a "status" -d 'Show for each name whether it is locked, and for how much longer'
complete -c redlock -n "__fish_redlock_using_subcommand help; and not __fish_seen_subcommand_from run status list doctor top bench completions help" -f -a "list" -d 'List the locks whose names begin with PREFIX'
complete -c redlock -n "__fish_redlock_using_subcommand help; and not __fish_seen_subcommand_from run status list doctor top bench completions help" -f -a "doctor" -d 'Check each server: what it is, what it keeps, its vote or why it has none, and what to do about it'
complete -c redlock -n "__fish_redlock_using_subcommand help; and not __fish_seen_subcommand_from run status list doctor top bench completions help" -f -a "top" -d 'Show how many clients wait for each lock, and how often locks change hands'
complete -c redlock -n "__fish_redlock_using_subcommand help; and not __fish_seen_subcommand_from run status list doctor top bench completions help" -f -a "bench" -d 'Measure how long locking takes on these servers, and draw the result'
complete -c redlock -n "__fish_redlock_using_subcommand help; and not __fish_seen_subcommand_from run status list doctor top bench completions help" -f -a "completions" -d 'Print a script that completes the arguments of this program in a shell'
complete -c redlock -n "__fish_redlock_using_subcommand help; and not __fish_seen_subcommand_from run status list doctor top bench completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
