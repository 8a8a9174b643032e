-- Wrong options are refused by name; keys can be mapped to everything; the help
-- describes every command, option and mapping.
local t = require('support')
local waza = require('waza')

for _, wrong in ipairs({
  { { paht = 'waza' }, 'setup() has no option "paht"' },
  { { path = 1 }, 'path' },
  { { quickfix = 'sometimes' }, 'quickfix' },
  { { signs = 'yes' }, 'signs' },
}) do
  local ok, err = pcall(waza.setup, wrong[1])
  t.is(not ok, 'it is refused')
  t.has(tostring(err), wrong[2])
end
t.same('waza', require('waza.config').options.path, 'the refused options change nothing')

local file = assert(io.open(vim.env.PLUGIN .. '/doc/waza.txt'))
local help = file:read('*a')
file:close()
for name in pairs(require('waza.config').options) do
  t.has(help, '*waza-option-' .. name .. '*')
end
local commands = 0
for name in pairs(vim.api.nvim_get_commands({})) do
  if vim.startswith(name, 'Waza') then
    commands = commands + 1
    t.has(help, '*:' .. name .. '*')
  end
end
t.same(9, commands)
for _, map in ipairs(vim.api.nvim_get_keymap('n')) do
  if vim.startswith(map.lhs, '<Plug>(waza') then
    t.has(help, '*' .. map.lhs .. '*')
  end
end

-- The tags of the help file are valid for Neovim, and no line is too wide.
vim.fn.mkdir(t.dir .. '/doc', 'p')
t.write('doc/waza.txt', help)
vim.cmd('helptags ' .. t.dir .. '/doc')
t.is(vim.fn.filereadable(t.dir .. '/doc/tags') == 1, 'there are tags')
for line in help:gmatch('[^\n]+') do
  t.is(vim.fn.strdisplaywidth(line) <= 80, 'too wide: ' .. line)
end
