-- :checkhealth shows what works, and what to do otherwise.
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
t.has(text, '`waza lsp` works')
t.has(text, 'no daemon is running yet')
t.is(not text:find('ERROR', 1, true), text)

t.edit(t.write('eval.yaml', t.greeter))
t.has(check(), t.dir .. ': ready, waza ')

t.setup({ path = t.dir .. '/nowhere' })
text = check()
t.has(text, 'ERROR')
t.has(text, 'does not exist or is not executable')
t.has(text, 'Install waza on the PATH')
