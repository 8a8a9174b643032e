-- Findings of a suite appear while typing, and a quick fix removes them.
local t = require('support')

t.setup()
local buffer = t.edit(t.write('eval.yaml', t.greeter))
t.same({}, vim.diagnostic.get(buffer))

vim.api.nvim_buf_set_lines(buffer, 3, 4, false, { '  trials_per_taks: 2' })
t.wait('the finding', function()
  return #vim.diagnostic.get(buffer) == 1
end)
local found = vim.diagnostic.get(buffer)[1]
t.same({ 3, 2, 3, 17 }, { found.lnum, found.col, found.end_lnum, found.end_col })
t.same({ 'waza', vim.diagnostic.severity.ERROR }, { found.source, found.severity })
t.has(found.message, 'trials_per_taks')
t.is(vim.bo[buffer].modified, 'nothing was written')

vim.api.nvim_win_set_cursor(0, { 4, 4 })
vim.ui.select = function(items, options, choose) -- luacheck: ignore
  for i, item in ipairs(items) do
    if options.format_item(item):find('trials_per_task', 1, true) then
      return choose(item, i)
    end
  end
  error('there is no fix among ' .. vim.inspect(items))
end
vim.lsp.buf.code_action()
t.wait('the fix', function()
  return vim.api.nvim_buf_get_lines(buffer, 3, 4, false)[1] == '  trials_per_task: 2'
end)
t.wait('the finding to go', function()
  return #vim.diagnostic.get(buffer) == 0
end)

-- In a task file, too; characters beyond ASCII do not shift the columns.
t.write('files/eval.yaml', 'name: files\nconfig: {executor: mock}\ntasks: [tasks/*.yaml]\n')
buffer = t.edit(t.write('files/tasks/greet.yaml', 'id: greet\nname: Grüße\nprompt: Greet Ada.\n'))
vim.api.nvim_buf_set_lines(buffer, 1, 2, false, { '{' })
t.wait('the fault', function()
  local list = vim.diagnostic.get(buffer)
  return #list > 0 and list[1].severity == vim.diagnostic.severity.ERROR
end)
vim.api.nvim_buf_set_lines(buffer, 1, 2, false, { 'name: Grüße' })
t.wait('it to go', function()
  return #vim.diagnostic.get(buffer, { severity = vim.diagnostic.severity.ERROR }) == 0
end)
t.same(
  { 'nothing-checked' },
  vim.tbl_map(function(d)
    return d.code or d.user_data.lsp.code
  end, vim.diagnostic.get(buffer))
)
