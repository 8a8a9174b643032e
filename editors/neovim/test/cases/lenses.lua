-- Code lenses are shown if enabled, and their runs are shown like any run.
local t = require('support')

t.setup({ code_lens = true })
local buffer = t.edit(t.write('eval.yaml', t.greeter))
local function titles()
  local found = {}
  for _, lens in ipairs(vim.lsp.codelens.get(buffer)) do
    local line = lens.range.start.line + 1
    found[line] = found[line] or {}
    table.insert(found[line], lens.command.title)
  end
  return found
end
local function lens(line, part)
  for i, title in ipairs(titles()[line] or {}) do
    if title:find(part, 1, true) then
      return i
    end
  end
end
t.wait('the lenses', function()
  return lens(18, 'Run') and lens(20, 'Run') and lens(20, 'Debug')
end)

-- A refresh that the daemon requests asks again, even while an older answer is pending.
local show, answers = vim.lsp.codelens.on_codelens, 0
vim.lsp.codelens.on_codelens = function(...)
  answers = answers + 1
  return show(...)
end
vim.lsp.codelens.refresh()
for _, client in pairs((vim.lsp.get_clients or vim.lsp.get_active_clients)()) do
  client.handlers['workspace/codeLens/refresh']()
end
t.wait('both answers', function()
  return answers == 2
end, 10)
vim.lsp.codelens.on_codelens = show

local wanted = 'Debug'
vim.ui.select = function(items, options, choose) -- luacheck: ignore
  for _, item in ipairs(items) do
    if options.format_item(item):find(wanted, 1, true) then
      return choose(item)
    end
  end
end
vim.api.nvim_win_set_cursor(0, { 20, 0 })
local run = t.run('lua vim.lsp.codelens.run()')
t.same({ 'letter' }, run.order)
t.same(1, run.tasks.letter.total, 'debugging runs one trial')
t.shows('waza-output')
vim.cmd('close')

wanted = 'Run'
run = t.run('lua vim.lsp.codelens.run()')
t.same(2, run.tasks.letter.total)
t.wait('the last result', function()
  return lens(20, '0/2')
end)

-- The lens with the result opens the transcript.
wanted = '0/2'
vim.lsp.codelens.run()
t.shows('waza-transcript')
t.same('letter', vim.b.waza_trial.task)
