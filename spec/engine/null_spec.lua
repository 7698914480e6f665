-- NULL for every pointer of perigee.h's functions, as their prototypes list them.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local C = pgee.C

-- What reads one thing off a handle and gives something else than 0 or NULL for none.
local GETTERS = {
  pgee_tensor_dtype = -1, pgee_packed_dtype = -1, pgee_plan_op = -1, pgee_tensor_nonfinite = -1, pgee_tokenizer_id = -1,
  pgee_tensor_ndim = 0, pgee_tokenizer_left = 0, pgee_tensor_writable = 0, pgee_tensor_equal = 0,
}

-- { { result = "int", name = "pgee_sqnr", args = { "double *db", ... } }, ... }: those that take a pointer.
local function prototypes()
  local list = {}
  local text = ffi.string(C.pgee_header()):gsub("/%*.-%*/", "")
  for result, name, args in text:gmatch "\n([%w_ ]+[ %*])(pgee_[%w_]+)(%b());" do
    local p = { result = result:gsub(" $", ""), name = name, args = {} }
    for arg in args:sub(2, -2):gsub("%s+", " "):gmatch "[^,]+" do
      p.args[#p.args + 1] = arg:gsub("^ ", "")
    end
    list[#list + 1] = args:find("*", 1, true) and p or nil
  end
  return list
end

-- Calls it with NULL for pointers and `number` for numbers.
local function call(p, number)
  local values = {}
  for i, arg in ipairs(p.args) do
    values[i] = not arg:find("*", 1, true) and number or nil
  end
  return C[p.name](unpack(values, 1, #p.args))
end

-- Whether the last message says that one of the arguments is missing, by name.
local function names_argument(p)
  local said = ffi.string(C.pgee_message())
  for _, arg in ipairs(p.args) do
    local name = arg:match "[%w_]+$"
    if arg:find("*", 1, true) and (said:find(name .. " is NULL", 1, true) or said:find(name .. " is missing", 1, true)) then
      return true
    end
  end
  return false
end

describe("NULL", function()
  it("is found in the prototypes of the header", function()
    local names = {}
    for _, p in ipairs(prototypes()) do
      names[p.name] = #p.args
    end
    assert.same({ 5, 7, 1, 3 },
      { names.pgee_tokenizer_encode_texts, names.pgee_tokenizer_encode, names.pgee_plan_new, names.pgee_sqnr })
    assert.is_nil(names.pgee_threads_set)
  end)

  for _, number in ipairs { 0, 1 } do
    it("is refused by name or gives nothing, with numbers of " .. number, function()
      for _, p in ipairs(prototypes()) do
        local got = call(p, number)
        if p.result == "void" then
          assert.matches("_free$", p.name)
        elseif p.result == "int" and not GETTERS[p.name] then
          assert.equal(C.PGEE_ARGUMENT, got, p.name)
          assert.is_true(names_argument(p), p.name .. ": " .. ffi.string(C.pgee_message()))
        elseif p.result:find("*", 1, true) then
          assert.is_true(got == nil, p.name)
        else
          assert.equal(GETTERS[p.name] or 0, tonumber(got), p.name)
        end
      end
    end)
  end

  it("is refused where the result should go, and the handle lives on", function()
    local plan, buffer, w = pgee.out "pgee_plan *", pgee.out "pgee_tensor *", pgee.out "pgee_packed *"
    local tensor = require("perigee.tensor").new("F32", { 2, 4 })
    local one, two = ffi.new("const pgee_tensor *[1]", { tensor.handle }), ffi.new "const pgee_tensor *[2]"
    two[0] = tensor.handle
    local function refused(said, status)
      assert.equal(C.PGEE_ARGUMENT, status)
      assert.equal(said, ffi.string(C.pgee_message()))
    end
    assert.equal(C.PGEE_OK, C.pgee_plan_new(plan))
    local p = ffi.gc(plan[0], C.pgee_plan_free)
    refused("pgee_plan_buffer: out is NULL", C.pgee_plan_buffer(p, nil, C.PGEE_F32, C.PGEE_TOKENS, 4))
    assert.equal(C.PGEE_OK, C.pgee_plan_buffer(p, buffer, C.PGEE_F32, C.PGEE_TOKENS, 0))
    refused("norm: args is NULL", C.pgee_plan_push(p, C.PGEE_NORM, nil))
    refused("pgee_plan_seal: outputs is NULL", C.pgee_plan_seal(p, nil, 1))
    refused("-1 outputs, expected 0 or more", C.pgee_plan_seal(p, nil, -1))
    assert.equal(C.PGEE_OK, C.pgee_plan_seal(p, nil, 0))
    refused("pgee_plan_bytes: bytes is NULL", C.pgee_plan_bytes(p, 1, 1, 1, 0, nil))
    refused("pgee_workspace_new: out is NULL", C.pgee_workspace_new(nil, p, 1, 1, 1, 0))
    refused("pgee_tensor_rows: out is NULL", C.pgee_tensor_rows(nil, tensor.handle, 0, 1))
    refused("pgee_packed_f32: out is NULL", C.pgee_packed_f32(nil, one, 1))
    refused("weight 2 is missing, expected a tensor [rows][4]", C.pgee_packed_f32(w, two, 2))
    -- A plan's buffer is a tensor, but has no memory to read or write.
    refused("s is a plan's buffer, which has no memory of its own", C.pgee_packed_s8(w, one, 1, buffer[0], C.PGEE_PER_ROW))
    refused("wmax is a plan's buffer, which has no memory of its own", C.pgee_channel_absmax(buffer[0], one, 1))
  end)
end)
