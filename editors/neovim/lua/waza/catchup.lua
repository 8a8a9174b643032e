-- Runs that a daemon carried out when it died: the one that follows it tells what was
-- missed, and takes up what was cut short.

local config = require('waza.config')
local notice = require('waza.notice')

local M = {}

-- subscribe asks for what was missed of some runs.
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

-- resume takes a run that was interrupted up again, if it is of this Neovim and the
-- user has not said otherwise.
function M.resume(daemon, run)
  if not config.options.resume_interrupted or not run.own then
    notice.warn(('run %s was interrupted; r in :WazaRuns takes it up again'):format(run.id))
    return
  end
  daemon:request('run.resume', { runId = run.id }, function(err)
    if err then
      notice.error(('run %s cannot be taken up again: %s'):format(run.id, notice.reason(err)))
    else
      run.status = 'running'
      notice.info(('run %s was interrupted, and is taken up again'):format(run.id))
    end
  end)
end

return M
