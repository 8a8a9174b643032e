-- Calls the adapter as neotest's interface documents it. Stand-ins replace the two
-- modules of neotest that it uses: trees of positions, and running a process.
local t = require('support')

local Tree = {}
Tree.__index = Tree

function Tree.from_list(list, key)
  local tree = setmetatable({ position = list[1], children = {} }, Tree)
  tree.id = key(list[1])
  for i = 2, #list do
    table.insert(tree.children, Tree.from_list(list[i], key))
  end
  return tree
end

function Tree:data()
  return self.position
end

function Tree:iter()
  local all = { self.position }
  for _, child in ipairs(self.children) do
    table.insert(all, child.position)
  end
  return ipairs(all)
end

package.loaded['neotest.types'] = { Tree = Tree }
package.loaded['neotest.lib'] = {
  process = {
    run = function(command)
      local out = vim.fn.system(command)
      return vim.v.shell_error, { stdout = out }
    end,
  },
}

local adapter = require('neotest-waza')({ path = vim.env.WAZA, args_of_run = { '--workers', '1' } })
local path = t.write('repo/evals/eval.yaml', t.greeter)
vim.fn.mkdir(t.dir .. '/repo/.git', 'p')

t.same('waza', adapter.name)
t.same(t.dir .. '/repo', adapter.root(t.dir .. '/repo/evals'))
t.is(adapter.is_test_file(path) and not adapter.is_test_file(t.dir .. '/repo/evals/tasks/a.yaml'), 'suites are tests')
t.is(adapter.filter_dir('evals', 'evals', t.dir) and not adapter.filter_dir('node_modules', '', t.dir), 'directories')

local tree = adapter.discover_positions(path)
t.same({ type = 'file', id = path, name = 'eval.yaml', path = path, range = { 0, 0, 23, 0 } }, tree:data())
t.same({
  { type = 'test', id = path .. '::hello', name = 'hello', path = path, range = { 17, 0, 18, 0 } },
  { type = 'test', id = path .. '::letter', name = 'letter', path = path, range = { 19, 0, 23, 0 } },
}, vim.tbl_map(Tree.data, tree.children))

-- carry executes a spec like neotest.
local function carry(of, extra)
  local spec = adapter.build_spec({ tree = of, extra_args = extra, strategy = 'integrated' })
  local output = vim.fn.tempname()
  local code
  local job = vim.fn.jobstart({ 'sh', '-c', 'exec "$@" >"$0" 2>&1', output, unpack(spec.command) }, {
    cwd = spec.cwd,
    env = spec.env,
    on_exit = function(_, c)
      code = c
    end,
  })
  t.is(job > 0, 'it is started')
  t.wait('the run', function()
    return code
  end)
  return adapter.results(spec, { code = code, output = output }, of), spec, output
end

local results, spec, output = carry(tree)
t.same(path, spec.command[3])
t.same('passed', results[path .. '::hello'].status)
t.same({
  status = 'failed',
  output = output,
  short = '0/2 trials passed',
  errors = {
    {
      message = 'polite: the output does not contain "Hello"\noutput: "The letter is in letter.md."',
      line = 19,
    },
  },
}, results[path .. '::letter'])

-- One task, with arguments of the user.
results = carry(tree.children[1], { '--trials', '3' })
t.same({ path .. '::hello' }, vim.tbl_keys(results))
t.same('3/3 trials passed', results[path .. '::hello'].short)

-- A suite that became invalid fails as a file; no tests are discovered in it.
t.write('repo/evals/eval.yaml', (t.greeter:gsub('type: text', 'type: texd')))
results = carry(tree)
t.same('failed', results[path].status)
t.same('waza run ended with code 2', results[path].errors[1].message)
t.same(nil, adapter.discover_positions(path))
t.same(nil, adapter.build_spec({ tree = Tree.from_list({ { type = 'dir', id = 'x', path = t.dir } }, tostring) }))

-- The worst result of a task's cells counts.
local matrix = t.write(
  'repo/matrix/eval.yaml',
  [[
name: cells
config:
  executor: mock
  matrix: {word: [Hello, Bye]}
  mock: {replies: [{match: Hello, output: Hello}, {match: Bye, output: Bye}]}
tasks:
  - id: greet
    prompt: Say {{word}}.
    graders: [{name: polite, type: text, config: {contains: [Hello]}}]
]]
)
tree = adapter.discover_positions(matrix)
results = carry(tree)
t.same('failed', results[matrix .. '::greet'].status)
t.same('1/1 trials passed, 0/1 trials passed', results[matrix .. '::greet'].short)
