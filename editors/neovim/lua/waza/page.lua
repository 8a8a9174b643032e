-- Text with highlights, built line by line, and the windows that show it.

local config = require('waza.config')

local M = {}
local Page = {}
Page.__index = Page

local namespace = vim.api.nvim_create_namespace('waza_page')

-- new creates an empty page.
function M.new()
  return setmetatable({ lines = {}, marks = {}, targets = {} }, Page)
end

-- line adds a line of {text, group} chunks. It returns the number of the line, from 1.
function Page:line(...)
  local text = ''
  local number = #self.lines + 1
  for _, chunk in ipairs({ ... }) do
    local part, group = chunk, nil
    if type(chunk) == 'table' then
      part, group = chunk[1], chunk[2]
    end
    part = tostring(part):gsub('[\n\r]', ' '):gsub('%z', '')
    if group then
      table.insert(self.marks, { number - 1, #text, #text + #part, group })
    end
    text = text .. part
  end
  table.insert(self.lines, text)
  return number
end

-- text adds several lines, each indented.
function Page:text(text, group, indent)
  text = vim.trim((text or ''):gsub('\r\n?', '\n'))
  for _, line in ipairs(vim.split(text, '\n')) do
    self:line(indent or '  ', { line, group })
  end
end

-- heading adds a title, after an empty line if the page is not empty.
function Page:heading(title)
  if #self.lines > 0 then
    self:line('')
  end
  return self:line({ title, 'WazaTitle' })
end

-- target sets the meaning of the last line, for keys that act on it.
function Page:target(what)
  self.targets[#self.lines] = what
end

-- fill writes the page into a buffer.
function Page:fill(buffer)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, self.lines)
  vim.bo[buffer].modifiable = false
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  for _, m in ipairs(self.marks) do
    vim.api.nvim_buf_set_extmark(buffer, namespace, m[1], m[2], { end_col = m[3], hl_group = m[4], strict = false })
  end
end

local function scratch(filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].filetype = filetype
  return buffer
end

local function map(buffer, keys)
  for key, action in pairs(keys) do
    vim.keymap.set('n', key, action[1], { buffer = buffer, nowait = true, silent = true, desc = action[2] })
  end
end

local function plain(window)
  vim.wo[window].number, vim.wo[window].relativenumber = false, false
  vim.wo[window].signcolumn, vim.wo[window].list = 'no', false
  vim.wo[window].cursorline = true
end

-- height returns the rows that the page needs in a window of this width, which wraps.
function Page:height(width)
  local rows = 0
  for _, line in ipairs(self.lines) do
    rows = rows + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / width))
  end
  return rows
end

-- float shows the page in a floating window, with keys as {key = {action, description}}.
function M.float(page, title, filetype, keys)
  local width = math.max(20, math.min(100, vim.o.columns - 8))
  local height = math.max(3, math.min(page:height(width), vim.o.lines - 6))
  local buffer = scratch(filetype)
  local options = {
    relative = 'editor',
    style = 'minimal',
    border = config.options.border,
    width = width,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
  }
  if vim.fn.has('nvim-0.9') == 1 and options.border ~= 'none' then
    options.title, options.title_pos = ' ' .. title .. ' ', 'center'
  end
  local window = vim.api.nvim_open_win(buffer, true, options)
  plain(window)
  vim.wo[window].wrap, vim.wo[window].linebreak, vim.wo[window].cursorline = true, true, false
  -- These pages are long texts, so they have the colors of text instead of a menu.
  vim.wo[window].winhighlight = 'NormalFloat:Normal,FloatBorder:WazaQuiet'
  page:fill(buffer)
  map(buffer, keys)
  return buffer, window
end

-- split shows the page in a window below, in the window of the same name if it is open.
-- Its status line is the hint.
function M.split(page, name, filetype, keys, hint)
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(name, '[]*?{}\\') .. '$')
  local window = buffer ~= -1 and vim.fn.bufwinid(buffer) or -1
  if window == -1 then
    vim.cmd('botright ' .. math.max(8, math.min(#page.lines + 1, math.floor(vim.o.lines * 0.4))) .. 'split')
    window = vim.api.nvim_get_current_win()
    buffer = scratch(filetype)
    vim.api.nvim_win_set_buf(window, buffer)
    vim.api.nvim_buf_set_name(buffer, name)
    plain(window)
    vim.wo[window].wrap = false
    vim.wo[window].statusline = ' ' .. hint
  else
    vim.api.nvim_set_current_win(window)
  end
  page:fill(buffer)
  map(buffer, keys)
  return buffer, window
end

-- pad pads a text to that many cells.
function M.pad(text, width)
  return text .. (' '):rep(width - vim.fn.strdisplaywidth(text))
end

-- widest returns the width of the widest text.
function M.widest(texts)
  local most = 0
  for _, text in ipairs(texts) do
    most = math.max(most, vim.fn.strdisplaywidth(text))
  end
  return most
end

return M
