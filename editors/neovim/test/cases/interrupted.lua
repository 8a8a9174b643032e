-- If runs do not resume automatically, an interrupted run stays interrupted until it is
-- resumed from the list of runs.
local t = require('support')

t.setup({ resume_interrupted = false, restart = { delay = 20, max_delay = 100, attempts = 5 } })
local buffer, suite = t.edit(t.write('eval.yaml', t.gated))
local run = t.start_gated()
vim.loop.kill(require('waza.compat').pid(suite.daemon:client()), 'sigkill')
t.wait('the end of the run', function()
  return run.status == 'interrupted'
end)
t.wait('the message', function()
  return t.said('press r in :WazaRuns to resume it') == 1
end)
t.wait('the mark', function()
  return t.marks(buffer)[16] == '○ 1/3 cancelled'
end)

t.write('gate', '')
vim.cmd('WazaRuns')
local list = t.shows('waza-runs')
t.has(t.text(list), 'interrupted')
t.press('gg')
t.press('r')
t.wait('the end', function()
  return run.status == 'completed'
end)
t.wait('the mark', function()
  return t.marks(buffer)[16] == '✓ 3/3 passed'
end)
