--- busted for hard_host, which takes a script: busted's own command may be one of the shell.
require "busted.runner" { standalone = false }
