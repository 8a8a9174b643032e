-- Numbers formatted like waza's: rounding never makes a number equal to a limit that it
-- differs from, and bounds of intervals are rounded outward.

local M = {}

local same = 1e-9
local most_digits = 9

local function side(x, limit)
  return x < limit - same and -1 or x > limit + same and 1 or 0
end

-- apart formats x with decimals, and with more if the formatted number would compare
-- differently with one of the limits.
local function apart(x, decimals, limits)
  while true do
    local text = ('%.' .. decimals .. 'f'):format(x)
    local alike = true
    for _, limit in ipairs(limits) do
      alike = alike and side(x, limit) == side(tonumber(text), limit)
    end
    if alike or decimals >= most_digits then
      return tonumber(text) == 0 and text:gsub('-', '') or text
    end
    decimals = decimals + 1
  end
end

-- outward formats the bounds of an interval.
local function outward(low, high, decimals, limits)
  while true do
    local unit = 10 ^ decimals
    local below, above = math.floor(low * unit + same) / unit, math.ceil(high * unit - same) / unit
    local alike = true
    for _, limit in ipairs(limits) do
      alike = alike and side(low, limit) == side(below, limit) and side(high, limit) == side(above, limit)
    end
    if alike or decimals >= most_digits then
      local form = '%.' .. decimals .. 'f'
      return form:format(below), form:format(above)
    end
    decimals = decimals + 1
  end
end

local function signed(text)
  return tonumber(text) > 0 and '+' .. text or tonumber(text) == 0 and (text:gsub('-', '')) or text
end

function M.percent(share)
  return apart(share * 100, 0, { 0, 100 }) .. ' %'
end

function M.interval(of)
  local low, high = outward(of.low * 100, of.high * 100, 0, {})
  return low .. '–' .. high .. ' %'
end

function M.score(s)
  return (apart(s, 2, { 0, 1 }))
end

function M.points(difference)
  return signed(apart(difference * 100, 0, { 0 }))
end

function M.points_interval(of)
  local low, high = outward(of.low * 100, of.high * 100, 0, { 0 })
  return '[' .. signed(low) .. ', ' .. signed(high) .. ']'
end

return M
