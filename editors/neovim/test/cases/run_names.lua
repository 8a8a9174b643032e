-- :WazaRun accepts suites by directory, file or glob, and tasks of the buffer's suite by
-- glob.
local t = require('support')

t.setup()
vim.cmd('cd ' .. t.dir)
t.write('a/eval.yaml', t.greeter)
t.write('b/eval.yaml', t.greeter)
t.write('.github/workflows/eval.yml', 'on: push\njobs: {}\n') -- which is not a suite
local paths = require('waza.paths')
t.is(not paths.is_suite(t.dir .. '/.github/workflows/eval.yml'), 'a workflow')
t.is(paths.is_suite(t.dir .. '/.github/evals/eval.yml'), 'a suite')

-- Without a suite in the buffer, the user chooses one below the directory.
local asked
vim.ui.select = function(items, options, choose) -- luacheck: ignore
  asked = vim.tbl_map(options.format_item, items)
  choose(items[2])
end
local run = t.run()
t.same({ 'greeter (a/eval.yaml)', 'greeter (b/eval.yaml)' }, asked)
t.same(t.dir .. '/b/eval.yaml', run.suite_path)

run = t.run('WazaRun a')
t.same(t.dir .. '/a/eval.yaml', run.suite_path)
t.same({ 'hello', 'letter' }, run.order)

t.edit(t.dir .. '/a/eval.yaml')
run = t.run('WazaRun hel*')
t.same({ 'hello' }, run.order)
t.is(vim.tbl_contains(vim.fn.getcompletion('WazaRun he', 'cmdline'), 'hello'), 'tasks complete')

vim.cmd('enew | WazaRun nowhere')
t.wait('the message', function()
  return t.said('nowhere: no suite has this name') == 1
end)

-- Unwritten changes are written first, so that the run uses the visible text.
vim.cmd('edit a/eval.yaml')
vim.cmd([[silent %s/Hello, Ada/Hallo, Ada/]])
run = t.run()
t.same('failed', run.tasks.hello.verdict)
t.is(not vim.bo.modified, 'the buffer was written')
