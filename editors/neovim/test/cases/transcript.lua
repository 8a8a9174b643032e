-- The transcript of the first failed trial is shown in a float: graders, messages,
-- tools and files; keys go to other trials and close it.
local t = require('support')

t.setup()
t.edit(t.write('eval.yaml', t.greeter))
local run = t.run()

vim.api.nvim_win_set_cursor(0, { 20, 0 })
local origin = vim.api.nvim_get_current_win()
vim.cmd('WazaTranscript')
local buffer, window = t.shows('waza-transcript')
t.is(vim.api.nvim_win_get_config(window).relative ~= '', 'it floats')
t.same({ run = run.id, task = 'letter', trial = 1 }, vim.b[buffer].waza_trial)
local text = t.text(buffer)
for _, part in ipairs({
  'Write a letter · trial 1  ✗ failed  score 0.00',
  '✗ polite  text  score 0.00\n    the output does not contain "Hello"',
  '▌ User\n  Write a letter.',
  '▶ write\n  {"path":"letter.md"}\n  → done',
  '▌ Assistant\n  The letter is in letter.md.',
  'changed notes.txt\n  @@ -1,2 +1,2 @@\n   one\n  -two\n  +three',
  'added letter.md\n  +Dear Ada,\n  +all is well.',
}) do
  t.has(text, part)
end

local groups = {}
local namespace = vim.api.nvim_get_namespaces().waza_page
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, { details = true })) do
  groups[mark[4].hl_group] = true
end
for _, group in ipairs({ 'WazaTitle', 'WazaFailed', 'WazaUser', 'WazaAgent', 'WazaTool', 'WazaAdded', 'WazaRemoved' }) do
  t.is(groups[group], group .. ' is used')
  t.same(1, vim.fn.hlexists(group))
end

local function turned(task, trial)
  return function()
    local shown = vim.b.waza_trial
    return shown and shown.task == task and shown.trial == trial
  end
end
t.press(']t')
t.wait('the next trial', turned('letter', 2))
t.press(']t')
t.wait('the first trial', turned('hello', 1))
t.press('[t')
t.wait('the previous trial', turned('letter', 2))
t.same(2, #vim.api.nvim_list_wins(), 'there is one float')
t.press('q')
t.same({ origin }, vim.api.nvim_list_wins())

-- The number of a trial can be given.
vim.cmd('WazaTranscript 2')
t.shows('waza-transcript')
t.same(2, vim.b.waza_trial.trial)
t.press('<Esc>')
t.same({ origin }, vim.api.nvim_list_wins())
