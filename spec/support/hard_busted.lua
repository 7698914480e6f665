--- busted inside hard_host, which takes a script: busted's own command may be a shell script.
require "busted.runner" { standalone = false }
