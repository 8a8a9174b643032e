-- Messages of the plugin to the user.

local M = {}

local said = {}

local function say(text, level)
  vim.schedule(function()
    vim.notify('waza: ' .. text, level)
  end)
end

function M.info(text)
  say(text, vim.log.levels.INFO)
end

function M.warn(text)
  say(text, vim.log.levels.WARN)
end

function M.error(text)
  say(text, vim.log.levels.ERROR)
end

-- once shows an error only the first time.
function M.once(text)
  if not said[text] then
    said[text] = true
    M.error(text)
  end
end

-- forget allows all messages to be shown again.
function M.forget()
  said = {}
end

-- reason describes an error of the daemon in one line: its message, and the first error
-- of the suite. With several lines the user would have to press a key.
function M.reason(err)
  if type(err) ~= 'table' then
    return tostring(err)
  end
  local text = err.message or 'unknown error'
  local errors = type(err.data) == 'table' and err.data.errors or {}
  if errors[1] then
    text = text .. ': ' .. errors[1]
  end
  if #errors > 1 then
    text = ('%s (and %d more)'):format(text, #errors - 1)
  end
  return text
end

return M
