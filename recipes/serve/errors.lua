--- The errors of requests.
local errors = {}

--- The kinds of error with their statuses, as text-embeddings-inference has them, and some that it lacks.
errors.STATUS = {
  Syntax = 400, Empty = 400, Unauthorized = 401, NotFound = 404, Method = 405, Validation = 413, Tokenizer = 422,
  Backend = 424, Overloaded = 429, Unhealthy = 503, Timeout = 503,
}

--- Ends a request with an error. kind: a key of that list; the rest: as for string.format.
function errors.fail(kind, ...)
  error({ kind = kind, message = string.format(...) }, 0)
end

return errors
