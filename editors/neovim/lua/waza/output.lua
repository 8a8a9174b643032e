-- The log: messages of runs, in a buffer that is kept while it is hidden.

local M = {}

local name = 'waza://output'
local most = 10000 -- lines

local function find()
  local buffer = vim.fn.bufnr('^' .. name .. '$')
  return buffer ~= -1 and buffer or nil
end

local function ensure()
  local buffer = find()
  if buffer and vim.api.nvim_buf_is_loaded(buffer) then
    return buffer
  end
  buffer = buffer or vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.fn.bufload(buffer)
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].bufhidden = 'hide'
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].buflisted = false
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].filetype = 'waza-output'
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buffer, desc = 'Close the log' })
  return buffer
end

local pending = {}

-- Removes the colors and bells of terminals, which have no effect in a buffer.
local function plain(text)
  return (text:gsub('\27%[[%d;?]*[%a]', ''):gsub('[%z\1-\8\11\12\14-\31\127]', ''))
end

local function follow(buffer, last)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local line = vim.api.nvim_win_get_cursor(window)[1]
    if line >= last then
      vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
    end
  end
end

local function flush()
  local lines = pending
  pending = {}
  local buffer = ensure()
  local last = vim.api.nvim_buf_line_count(buffer)
  local empty = last == 1 and vim.api.nvim_buf_get_lines(buffer, 0, 1, false)[1] == ''
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, empty and 0 or last, last, false, lines)
  local over = vim.api.nvim_buf_line_count(buffer) - most
  if over > 0 then
    vim.api.nvim_buf_set_lines(buffer, 0, over, false, {})
  end
  vim.bo[buffer].modifiable = false
  follow(buffer, last)
end

-- write appends a text to the log, which is updated soon.
function M.write(text)
  if #pending == 0 then
    vim.schedule(flush)
  end
  for _, line in ipairs(vim.split(plain(text), '\r?\n')) do
    table.insert(pending, (line:gsub('\r', '')))
  end
end

-- open shows the log in a window below, or goes to its window.
function M.open()
  local buffer = ensure()
  local window = vim.fn.bufwinid(buffer)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
    return
  end
  vim.cmd('botright 12split')
  vim.api.nvim_win_set_buf(0, buffer)
  vim.wo.number, vim.wo.relativenumber, vim.wo.signcolumn = false, false, 'no'
  vim.wo.wrap, vim.wo.winfixheight = true, true
  vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(buffer), 0 })
end

return M
