-- Runs whose daemon died: the next daemon sends the missed events, and resumes
-- interrupted runs.

local config = require('waza.config')
local notice = require('waza.notice')

local M = {}

-- subscribe requests the missed events of some runs.
function M.subscribe(daemon, runs)
  for _, run in ipairs(runs) do
    daemon:request('run.subscribe', { runId = run.id, fromSeq = run.seq + 1 }, function(err)
      if err then
        local lost = { runId = run.id, seq = run.seq + 1, status = 'failed', error = notice.reason(err) }
        daemon:heard('eval.complete', lost)
      end
    end)
  end
end

-- resume resumes an interrupted run if this Neovim started it and the option allows it.
function M.resume(daemon, run)
  if not config.options.resume_interrupted or not run.own then
    notice.warn(('run %s was interrupted; press r in :WazaRuns to resume it'):format(run.id))
    return
  end
  daemon:request('run.resume', { runId = run.id }, function(err)
    if err then
      notice.error(('run %s could not be resumed: %s'):format(run.id, notice.reason(err)))
    else
      run.status = 'running'
      notice.info(('run %s was interrupted and resumes'):format(run.id))
    end
  end)
end

return M
