-- The state of runs, built from the daemon's notifications. It depends on no connection
-- and no screen, so that tests can replay recorded dialogues.

local M = {}
M.__index = M

local keepable = { passed = true, failed = true, timeout = true, needs_review = true }

-- new creates a model without runs.
function M.new()
  return setmetatable({ runs = {}, order = {} }, M)
end

-- ensure returns the run with that id, and creates it if needed.
function M:ensure(id)
  local run = self.runs[id]
  if not run then
    run = { id = id, status = 'running', seq = 0, tasks = {}, order = {}, logs = 0 }
    self.runs[id] = run
    table.insert(self.order, id)
  end
  return run
end

local function count(task)
  task.passed, task.ended = 0, 0
  for _, verdict in pairs(task.trials) do
    if verdict == 'passed' then
      task.passed = task.passed + 1
    end
    if verdict ~= 'running' then
      task.ended = task.ended + 1
    end
  end
end

local function task_of(run, event)
  local task = run.tasks[event.taskId]
  if not task then
    task = { id = event.taskId, verdict = 'running', trials = {}, passed = 0, ended = 0 }
    run.tasks[event.taskId] = task
    table.insert(run.order, event.taskId)
  end
  task.name = event.taskName or task.name or event.taskId
  task.role = event.role or task.role
  task.total = event.totalTrials or task.total
  return task
end

local function drop(run, id)
  run.tasks[id] = nil
  run.order = vim.tbl_filter(function(other)
    return other ~= id
  end, run.order)
end

-- resumed removes trials that no longer count. The daemon reports how many trials it
-- keeps, but not which. If that number differs from the trials that could be kept, the
-- suite has changed, and all earlier trials are removed.
local function resumed(run, kept)
  run.status, run.error = 'running', nil
  local known = 0
  for _, task in pairs(run.tasks) do
    for number, verdict in pairs(task.trials) do
      if keepable[verdict] then
        known = known + 1
      else
        task.trials[number] = nil
      end
    end
  end
  for id, task in pairs(vim.deepcopy(run.tasks)) do
    if known ~= kept or vim.tbl_isempty(task.trials) then
      drop(run, id)
    else
      count(run.tasks[id])
      if run.tasks[id].ended < (task.total or 0) then
        run.tasks[id].verdict = 'running'
      end
    end
  end
end

local progress = {
  run_start = function(run, event)
    run.total_tasks, run.total_trials = event.totalTasks, event.totalTrials
  end,
  run_resumed = function(run, event)
    run.total_tasks, run.total_trials = event.totalTasks, event.totalTrials
    resumed(run, event.keptTrials or 0)
  end,
  task_start = function(run, event)
    task_of(run, event).verdict = 'running'
  end,
  trial_start = function(run, event)
    task_of(run, event).trials[event.trialNum] = 'running'
  end,
  trial_complete = function(run, event)
    local task = task_of(run, event)
    task.trials[event.trialNum] = event.status
    count(task)
  end,
  task_complete = function(run, event)
    local task = task_of(run, event)
    task.verdict, task.score = event.status, event.score
  end,
}

local function over(run, params)
  run.status, run.error, run.summary = params.status, params.error, params.summary
end

-- apply applies a notification. It returns the run if its state changed, and nil for
-- repeated or unknown notifications.
function M:apply(method, params)
  if type(params) ~= 'table' or not params.runId or not params.seq then
    return nil
  end
  local run = self:ensure(params.runId)
  if params.seq <= run.seq then
    return nil
  end
  if method == 'eval.complete' and params.status == 'interrupted' then
    -- This is not an event of the run: if the run resumes, the next event has its
    -- number.
    over(run, params)
    return run
  end
  run.seq = params.seq
  if method == 'eval.complete' then
    over(run, params)
  elseif method == 'eval.log' then
    run.logs, run.last_log = run.logs + 1, params.message
  elseif method == 'eval.progress' and progress[params.event] then
    progress[params.event](run, params)
  end
  return run
end

-- unfinished lists the runs that have not ended, in the order of their start.
function M:unfinished()
  local list = {}
  for _, id in ipairs(self.order) do
    if self.runs[id].status == 'running' then
      table.insert(list, self.runs[id])
    end
  end
  return list
end

-- tally counts the trials of a run: total, ended, passed, failed and errors.
function M.tally(run)
  local sum = { total = run.total_trials or 0, ended = 0, passed = 0, failed = 0, errors = 0 }
  for _, task in pairs(run.tasks) do
    for _, verdict in pairs(task.trials) do
      if verdict ~= 'running' then
        sum.ended = sum.ended + 1
      end
      if verdict == 'passed' or verdict == 'failed' then
        sum[verdict] = sum[verdict] + 1
      elseif verdict == 'error' then
        sum.errors = sum.errors + 1
      end
    end
  end
  return sum
end

return M
