-- waza: evals of AI agents in the editor.
--
-- require('waza').setup({ … }) sets options, see waza.config. The plugin also works
-- without it. Every command is also a function:
--
--   run(argument), run_nearest(), stop(), results(run), transcript(trial),
--   runs(all), compare(runs), output(), restart(), statusline()

local M = {}

local function lazily(name)
  return function(...)
    return require('waza.commands')[name](...)
  end
end

M.run = lazily('run')
M.run_nearest = lazily('run_nearest')
M.stop = lazily('stop')
M.results = lazily('results')
M.transcript = lazily('transcript')
M.runs = lazily('runs')
M.restart = lazily('restart')

function M.compare(runs)
  require('waza.commands').compare(runs or {})
end

function M.output()
  require('waza.output').open()
end

-- setup sets options, see :help waza-options. It can be called again.
function M.setup(options)
  require('waza.config').setup(options)
end

-- attach finds the suite of a buffer and attaches its daemon. It calls found(suite),
-- with nil if the buffer belongs to no suite.
function M.attach(buffer, found)
  require('waza.suites').find(buffer or vim.api.nvim_get_current_buf(), found)
end

local function running(active)
  local model = require('waza.model')
  local ended, total, failed = 0, 0, 0
  for _, a in ipairs(active) do
    local t = model.tally(a.run)
    ended, total, failed = ended + t.ended, total + t.total, failed + t.failed + t.errors
  end
  local text = ('waza %d/%d'):format(ended, total)
  return failed > 0 and ('%s %d failed'):format(text, failed) or text
end

-- statusline returns a short text about active runs or the last run; empty if there was
-- none. It is cheap and starts nothing.
function M.statusline()
  if not package.loaded['waza.runs'] then
    return ''
  end
  local runs = require('waza.runs')
  local active = runs.active()
  if #active > 0 then
    return running(active)
  end
  local run = runs.latest()
  if not run then
    return ''
  end
  local s = run.summary
  if not s then
    return 'waza ' .. run.status
  end
  local good = s.passed + (s.skipped or 0) == s.total
  return ('waza %s %d/%d'):format(require('waza.buffers').icon(good and 'passed' or 'failed'), s.passed, s.total)
end

return M
