-- Completion while typing, hover, definitions and symbols, through Neovim's own client.
local t = require('support')

t.setup()
local path = t.write('eval.yaml', 'name: files\nconfig:\n  executor: mock\ntasks:\n  - tasks/*.yaml\n')
local task = t.write('tasks/greet.yaml', 'id: greet\nname: Greet\nprompt: Greet Ada.\n')
local buffer = t.edit(path)
t.same('v:lua.vim.lsp.omnifunc', vim.bo[buffer].omnifunc)

-- Hover explains a key.
vim.api.nvim_win_set_cursor(0, { 3, 4 })
vim.lsp.buf.hover()
local float
t.wait('the hover', function()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then
      float = vim.api.nvim_win_get_buf(window)
      return true
    end
  end
end)
t.has(t.text(float), 'executor')

-- A definition leads from a glob to its task.
vim.api.nvim_win_set_cursor(0, { 5, 6 })
vim.lsp.buf.definition()
t.wait('the task', function()
  return vim.api.nvim_buf_get_name(0) == task
end)
vim.cmd('buffer ' .. buffer)

-- The outline of a suite.
local outline
vim.lsp.buf_request(buffer, 'textDocument/documentSymbol', {
  textDocument = vim.lsp.util.make_text_document_params(buffer),
}, function(_, result)
  outline = result
end)
t.wait('the outline', function()
  return outline
end)
t.has(vim.inspect(outline), 'config')

-- Completion needs a user who types: another Neovim, controlled by this one.
local other = vim.fn.jobstart(
  { vim.v.progpath, '--embed', '--headless', '-u', 'NONE', '-i', 'NONE', '-n' },
  { rpc = true }
)
local function lua(code, ...)
  return vim.fn.rpcrequest(other, 'nvim_exec_lua', code, { ... })
end
lua(
  [[
  local plugin, waza, path = ...
  vim.opt.runtimepath:append(plugin)
  vim.cmd('runtime plugin/waza.lua')
  require('waza').setup({ path = waza })
  vim.cmd('edit ' .. path)
  ]],
  vim.env.PLUGIN,
  vim.env.WAZA,
  path
)
t.wait('its daemon', function()
  return lua([[return vim.bo.omnifunc ~= '']])
end)
vim.fn.rpcrequest(other, 'nvim_input', '3GotrialX<BS>s_p<C-x><C-o>')
t.wait('the completion', function()
  local words = lua([[
    if vim.fn.pumvisible() == 0 then
      return vim.api.nvim_get_current_line():find('trials_per_task') and { 'trials_per_task' } or {}
    end
    return vim.tbl_map(function(i) return i.word end, vim.fn.complete_info({ 'items' }).items)
  ]])
  return words[1] and words[1]:find('trials_per_task', 1, true)
end)
vim.fn.jobstop(other)
