-- Damage to the records of runs, as run.list and run.result describe it.

local M = {}

-- found reports whether a part of a record is lost or corrupt. Doubts alone are no damage.
function M.found(damage)
  if type(damage) ~= 'table' then
    return false
  end
  return damage.events > 0 or damage.parts > 0 or (type(damage.files) == 'table' and #damage.files > 0)
end

return M
