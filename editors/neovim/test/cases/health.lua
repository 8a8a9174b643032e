-- :checkhealth says what is there, and what to do where something is not.
local t = require('support')

local function check()
  vim.cmd('checkhealth waza')
  local text = t.text()
  vim.cmd('bwipeout!')
  return text
end

t.setup()
local text = check()
t.has(text, 'Neovim 0.')
t.has(text, '`waza lsp` is there')
t.has(text, 'no daemon was started yet')
t.is(not text:find('ERROR', 1, true), text)

t.edit(t.write('eval.yaml', t.greeter))
t.has(check(), t.dir .. ': ready, waza ')

t.setup({ path = t.dir .. '/nowhere' })
text = check()
t.has(text, 'ERROR')
t.has(text, 'is not there, or not executable')
t.has(text, 'Install waza, so that it is on the PATH')
