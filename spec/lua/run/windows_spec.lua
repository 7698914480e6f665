-- Windows: how a text that is too long is cut.
local windows = require "perigee.run.windows"

-- An encoding as a tokenizer returns it: one special token before each text and one at the end, texts of a and b tokens.
local function encoding(a, b)
  local e = { ids = {}, sequences = {} }
  local function add(sequence, count)
    for _ = 1, count do
      e.ids[#e.ids + 1], e.sequences[#e.sequences + 1] = #e.ids + 1, sequence
    end
  end
  add(0, 1)
  add(1, a)
  if b then
    add(0, 1)
    add(2, b)
  end
  add(0, 1)
  return e
end

-- The tokens of the encoding that a window consists of.
local function tokens(window)
  local list = {}
  for t = 0, windows.size(window) - 1 do
    list[t + 1] = windows.source(window, t)
  end
  return list
end

describe("windows", function()
  it("have the special tokens, the other text, and the next tokens of the text that is cut", function()
    local list, stride = windows.cut(encoding(2, 7), 2, 9, 1) -- 1 2 3 4 | 5 6 7 8 9 10 11 | 12
    assert.are.equal(1, stride)
    assert.are.same({ { 1, 2, 3, 4, 5, 6, 7, 8, 12 }, { 1, 2, 3, 4, 8, 9, 10, 11, 12 } }, { tokens(list[1]), tokens(list[2]) })
    list = windows.cut(encoding(7, 2), 1, 9, 0)
    assert.are.same({ { 1, 2, 3, 4, 5, 9, 10, 11, 12 }, { 1, 6, 7, 8, 9, 10, 11, 12 } }, { tokens(list[1]), tokens(list[2]) })
  end)

  it("cover every token, are as long as they may be but for the last, and overlap by the stride", function()
    for count = 1, 40 do
      for limit = 3, 12 do
        for wanted = 0, 9 do
          local list, stride = windows.cut(encoding(count), 1, limit, wanted)
          local room = limit - 2
          assert.are.equal(math.min(wanted, math.floor(room / 2)), stride)
          assert.are.equal(2, list[1].from)
          assert.are.equal(count + 1, list[#list].to)
          for k, window in ipairs(list) do
            assert.is_true(windows.size(window) <= limit)
            assert.are.equal(k == #list and windows.size(window) or limit, windows.size(window))
            assert.are.equal(k == 1 and 2 or list[k - 1].to + 1 - stride, window.from)
          end
        end
      end
    end
  end)

  -- As transformers' overflowing tokens with truncation_side = "left": the same lengths and overlaps, counted from the end.
  it("are counted from the end of a text that is cut off on the left", function()
    for count = 1, 30 do
      for limit = 3, 9 do
        for wanted = 0, 5 do
          local e = encoding(count)
          local right = windows.cut(e, 1, limit, wanted)
          local left = windows.cut(e, 1, limit, wanted, { left = true })
          assert.are.equal(#right, #left)
          for k, window in ipairs(left) do
            local mirrored = right[#right + 1 - k]
            assert.are.same({ #e.ids + 1 - mirrored.to, #e.ids + 1 - mirrored.from }, { window.from, window.to })
          end
          for i = 2, count + 1 do -- the window with most context, by looking at all
            local best, most = nil, -1
            for k, window in ipairs(left) do
              local context = i >= window.from and i <= window.to and math.min(i - window.from, window.to - i) or -1
              if context > most then
                best, most = k, context
              end
            end
            assert.are.equal(best, windows.widest(left, i))
          end
        end
      end
    end
  end)

  it("begin with what is fixed", function()
    local list = windows.cut(encoding(8), 1, 6, 0, { fixed = 2 }) -- a prompt of two tokens
    assert.are.same({ { 1, 2, 3, 4, 5, 10 }, { 1, 2, 3, 6, 7, 10 }, { 1, 2, 3, 8, 9, 10 } },
      { tokens(list[1]), tokens(list[2]), tokens(list[3]) })
  end)

  it("are none where nothing is left for the text", function()
    assert.is_nil(windows.cut(encoding(9, 3), 2, 12, 0))
    assert.is_nil(windows.cut(encoding(9, 0), 2, 5, 0))
    assert.is_nil(windows.cut(encoding(3), 1, 8, 0, { fixed = 3 }))
  end)

  it("say in which of them a token has most context", function()
    local list = windows.cut(encoding(20), 1, 12, 4) -- tokens 2 to 11, 8 to 17, 14 to 21
    local widest = {}
    for i = 1, 22 do
      widest[i] = windows.widest(list, i)
    end
    assert.are.same({ 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 1 }, widest)
  end)

  it("have a token's context right whatever their sizes", function()
    for count = 1, 30 do
      for limit = 3, 10 do
        for stride = 0, 4 do
          local list = windows.cut(encoding(count), 1, limit, stride)
          for i = 1, count + 2 do
            local best, most
            for k, window in ipairs(list) do
              local context = math.min(i - window.from, window.to - i)
              if context >= 0 and (not most or context > most) then
                best, most = k, context
              end
            end
            assert.are.equal(best or 1, windows.widest(list, i))
          end
        end
      end
    end
  end)

  it("know the longer text", function()
    assert.are.equal(1, windows.text(encoding(3, 3), "longest"))
    assert.are.equal(2, windows.text(encoding(3, 4), "longest"))
    assert.are.equal(1, windows.text(encoding(3), "longest"))
    assert.are.equal(1, windows.text(encoding(3, 4), "first"))
    assert.are.equal(2, windows.text(encoding(4, 3), "second"))
  end)
end)
