-- Runs of this Neovim: starting, stopping, and reactions to their events.

local config = require('waza.config')
local daemons = require('waza.daemon')
local figures = require('waza.figures')
local model = require('waza.model')
local notice = require('waza.notice')
local output = require('waza.output')
local paths = require('waza.paths')
local suites = require('waza.suites')

local M = {}

local latest -- the run that started last
local suite_of = {} -- by run id

function M.latest()
  return latest
end

-- suite returns the suite of a run of this Neovim, else nil.
function M.suite(run_id)
  return suite_of[run_id]
end

-- active lists the active runs of all daemons.
function M.active()
  local list = {}
  for _, daemon in ipairs(daemons.all()) do
    for _, run in ipairs(daemon.model:unfinished()) do
      table.insert(list, { daemon = daemon, run = run })
    end
  end
  return list
end

local function warn_of(diagnostics)
  for _, d in ipairs(diagnostics or {}) do
    output.write(('%s: %s'):format(d.severity, d.message))
  end
end

local function started(suite, result)
  local run = suite.daemon.model:ensure(result.runId)
  run.own, run.suite_path = true, suite.path
  suite_of[run.id], latest = suite, run
  output.write(('── %s · run %s ──'):format(suite.path, run.id))
  warn_of(result.diagnostics)
  return run
end

-- adopt follows a past run that was resumed.
function M.adopt(daemon, info)
  local run = daemon.model:ensure(info.runId)
  local suite = suites.get(paths.normal(info.suite.path))
  run.status, run.own, run.adopted, run.suite_path = 'running', true, true, suite.path
  suite_of[run.id], latest = suite, run
  output.write(('── %s · run %s ──'):format(suite.path, run.id))
end

local function refused(suite, err)
  notice.error(('%s could not run: %s'):format(vim.fn.fnamemodify(suite.path, ':~:.'), notice.reason(err)))
  local findings = type(err.data) == 'table' and err.data.diagnostics
  if findings and config.options.quickfix then
    require('waza.quickfix').findings(suite, findings)
  end
end

-- start runs a suite or, with options.taskId or tasks, some of its tasks. Other options are
-- parameters of eval.run. after(err, run) is called when the run has started or failed to.
-- The daemon reads files, so changed buffers of the suite are written first.
function M.start(suite, options, after)
  local params = vim.tbl_extend('force', { path = suite.path }, options or {})
  M.write(suite)
  local method = (params.tasks or params.taskId) and 'task.run' or 'eval.run'
  suite.daemon:request(method, params, function(err, result)
    if err then
      refused(suite, err)
    end
    local run = not err and started(suite, result) or nil
    if after then
      after(err, run)
    end
  end)
end

-- write writes the changed buffers of a suite.
function M.write(suite)
  for buffer in pairs(suite.buffers) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      M.write_here(buffer)
    end
  end
end

-- write_here writes a changed buffer, because the daemon reads files.
function M.write_here(buffer)
  if vim.bo[buffer].modified and vim.bo[buffer].buftype == '' then
    vim.api.nvim_buf_call(buffer, function()
      vim.cmd('silent update')
    end)
  end
end

-- stop cancels every active run of this Neovim. It returns how many there are.
function M.stop()
  local active = M.active()
  for _, a in ipairs(active) do
    a.daemon:request('run.cancel', { runId = a.run.id }, function(err)
      if err then
        notice.error(('run %s could not be cancelled: %s'):format(a.run.id, notice.reason(err)))
      end
    end)
  end
  return #active
end

local function counts(run)
  local s = run.summary
  if not s then
    local t = model.tally(run)
    return ('%d of %d trials ended, %d passed'):format(t.ended, t.total, t.passed)
  end
  local words = { ('%d/%d tasks passed'):format(s.passed, s.total) }
  for _, kind in ipairs({ 'failed', 'errors', 'timeouts', 'cancelled', 'skipped', 'needsReview' }) do
    if (s[kind] or 0) > 0 then
      local word = kind == 'needsReview' and 'need a review' or kind
      table.insert(words, ('%d %s'):format(s[kind], word))
    end
  end
  return table.concat(words, ', ')
end

local function ended(suite, run)
  local name = vim.fn.fnamemodify(suite.path, ':~:.')
  local text = ('%s %s: %s'):format(name, run.status, counts(run))
  if run.error then
    text = text .. ': ' .. run.error
  end
  output.write(text)
  if run.status == 'interrupted' then
    return -- its daemon reports what happens to it
  end
  local s = run.summary
  local clean = run.status == 'completed' and s and s.passed + (s.skipped or 0) == s.total
  if clean then
    notice.info(text)
  else
    notice.warn(text)
  end
  if config.options.quickfix then
    require('waza.quickfix').failures(suite, run)
  end
end

local function logged(params)
  local task = params.taskId and ('[' .. params.taskId .. '] ') or ''
  local level = params.level ~= 'info' and params.level .. ': ' or ''
  output.write(task .. level .. params.message)
end

local function write_progress(params)
  if params.event == 'trial_complete' then
    local score = params.score and ' (score ' .. figures.score(params.score) .. ')' or ''
    local cached = params.cached and ', reused' or ''
    output.write(
      ('[%s] trial %d/%d %s%s%s'):format(
        params.taskId,
        params.trialNum,
        params.totalTrials or params.trialNum,
        params.status,
        score,
        cached
      )
    )
  elseif params.event == 'run_resumed' then
    output.write(('the run resumes; %d trials are kept'):format(params.keptTrials or 0))
  end
end

local fresh = {} -- runs with changes, by suite

local function keep_fresh()
  local list = fresh
  fresh = {}
  for suite, run in pairs(list) do
    suites.keep(suite, run)
  end
end

-- keep_soon updates the results of a suite soon: many events cause one update.
local function keep_soon(suite, run)
  if next(fresh) == nil then
    vim.defer_fn(keep_fresh, 30)
  end
  fresh[suite] = run
end

local heard = {
  ['eval.log'] = function(_, _, params)
    logged(params)
  end,
  ['eval.progress'] = function(suite, run, params)
    write_progress(params)
    keep_soon(suite, run)
  end,
  ['eval.complete'] = function(suite, run)
    fresh[suite] = nil
    suites.keep(suite, run)
    ended(suite, run)
    if run.adopted then
      suites.recall(suite) -- earlier events were not received
    end
    suite.daemon:refresh_lenses()
  end,
}

daemons.listen(function(_, run, method, params)
  local suite = suite_of[run.id]
  if suite then
    heard[method](suite, run, params)
  end
end)

return M
