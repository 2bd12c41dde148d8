# SPDX-License-Identifier: BSD-2-Clause
# Completion of weft(1) for fish.

complete -c weft -f
complete -c weft -s h -l help -d 'how to use it'
complete -c weft -l version -d 'the version'

complete -c weft -n __fish_use_subcommand -a info -d 'what this host can do, and what weft chooses'
complete -c weft -n __fish_use_subcommand -a ping -d 'does a node answer, and how fast'
complete -c weft -n __fish_use_subcommand -a serve -d 'answer pings and measurements'
complete -c weft -n __fish_use_subcommand -a perf -d 'measure tensors and calls'
complete -c weft -n __fish_use_subcommand -a services -d 'what a node serves'
complete -c weft -n __fish_use_subcommand -a key -d 'make a key file'
complete -c weft -n '__fish_seen_subcommand_from key' -a new
complete -c weft -n __fish_use_subcommand -a call -d 'call a method with JSON'
complete -c weft -n __fish_use_subcommand -a run -d 'several processes of one job'
complete -c weft -n __fish_use_subcommand -a help -d 'how to use a command'
complete -c weft -n '__fish_seen_subcommand_from help' -a 'info ping serve perf services call run key'

complete -c weft -n '__fish_seen_subcommand_from info' -l json -d 'one JSON object'
complete -c weft -n '__fish_seen_subcommand_from info' -l options -d 'settings'
complete -c weft -n '__fish_seen_subcommand_from info' -l plan -x -d 'how a body would go'
complete -c weft -n '__fish_seen_subcommand_from info' -l topology -d 'who publishes memory'

complete -c weft -n '__fish_seen_subcommand_from ping' -s c -l count -x -d 'how many times'

complete -c weft -n '__fish_seen_subcommand_from serve' -l listen -x -d 'host:port'
complete -c weft -n '__fish_seen_subcommand_from serve' -l once -d 'for one caller'
complete -c weft -n '__fish_seen_subcommand_from serve' -l callers -x -d 'so many begin together'

complete -c weft -n '__fish_seen_subcommand_from perf' -l test -x -a 'tensor call message stream attachment'
complete -c weft -n '__fish_seen_subcommand_from perf' -l sizes -x -d 'of bodies'
complete -c weft -n '__fish_seen_subcommand_from perf' -l tensors -x -d 'of one body'
complete -c weft -n '__fish_seen_subcommand_from perf' -l provider -x -d 'libfabric name'
complete -c weft -n '__fish_seen_subcommand_from perf' -l time -x -d 'seconds for each size'
complete -c weft -n '__fish_seen_subcommand_from perf' -l count -x -d 'bodies'
complete -c weft -n '__fish_seen_subcommand_from perf' -l window -x -d 'bodies at once'
complete -c weft -n '__fish_seen_subcommand_from perf' -l rate -x -d 'due in a second'
complete -c weft -n '__fish_seen_subcommand_from perf' -l memory -x -a 'user pool'
complete -c weft -n '__fish_seen_subcommand_from perf' -l metadata -x -d 'bytes with each call'
complete -c weft -n '__fish_seen_subcommand_from perf' -l idle-streams -x -d 'besides'
complete -c weft -n '__fish_seen_subcommand_from perf' -l device -x -a 'cuda:0 cuda:1'
complete -c weft -n '__fish_seen_subcommand_from perf' -l checksum -d 'of every body'
complete -c weft -n '__fish_seen_subcommand_from perf' -l security -x -a 'open keyed sealed' -d 'as WEFT_SECURITY'
complete -c weft -n '__fish_seen_subcommand_from perf' -l json -d 'one JSON object a line'
complete -c weft -n '__fish_seen_subcommand_from perf' -l no-validate -d 'do not compare'
complete -c weft -n '__fish_seen_subcommand_from perf' -l all-pairs -d 'of a job'
complete -c weft -n '__fish_seen_subcommand_from perf' -l bytes -x -d 'of a body, with --all-pairs'
complete -c weft -n '__fish_seen_subcommand_from perf' -l seconds -x -d 'for each pair, with --all-pairs'
complete -c weft -n '__fish_seen_subcommand_from perf' -l svg -r -F -d 'a picture, with --all-pairs'
complete -c weft -n '__fish_seen_subcommand_from perf' -l tune -d 'try other values of settings'

complete -c weft -n '__fish_seen_subcommand_from call' -s H -l header -x -d 'metadata'
complete -c weft -n '__fish_seen_subcommand_from call' -s t -l timeout -x -d 'the deadline in seconds'
complete -c weft -n '__fish_seen_subcommand_from call' -s v -l verbose -d 'print metadata'
complete -c weft -n '__fish_seen_subcommand_from call' -F

complete -c weft -n '__fish_seen_subcommand_from run' -s n -l count -x -d 'processes'
complete -c weft -n '__fish_seen_subcommand_from run' -l help -d 'how to use it'
complete -c weft -n '__fish_seen_subcommand_from run' -l version -d 'the version'
complete -c weft -n '__fish_seen_subcommand_from run' -F
