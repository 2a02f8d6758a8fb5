import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Running, skein, startDev, tempFolder } from './kit.ts'

const timeout = 90_000

const agent = (name: string): string => `import { defineAgent } from '@skein/runtime'
  export default defineAgent({ name: '${name}', type: 'ai_human', sideA: { prompt: '${name}' } })`
const prompt = (
  name: string,
  more = '',
): string => `import { says, scripted } from '@skein/ai/testing'
  import { definePrompt } from '@skein/runtime'
  export default definePrompt({ name: '${name}', prompt: 'Hi.', model: scripted(() => says('Hi.')), ${more} })`

/** Needs a key of a vendor. */
const poet = {
  'agents/poet.ts': agent('poet'),
  'prompts/poet.ts': `import { anthropic } from '@skein/ai/anthropic'
    import { definePrompt } from '@skein/runtime'
    export default definePrompt({ name: 'poet', prompt: 'Write.', model: anthropic('claude-x') })`,
}

function folderWith(files: Readonly<Record<string, string>>): string {
  const cwd = tempFolder()
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true })
    writeFileSync(join(cwd, path), text)
  }
  return cwd
}

describe('what can fail at run time fails in check', { timeout }, () => {
  test.each<[string, Readonly<Record<string, string>>, string | RegExp]>([
    [
      'a model without a key',
      poet,
      /agent "poet": model claude-x: there is no API key for anthropic: ANTHROPIC_API_KEY is not set; looked in the environment and .*\.env \(no such file\)/,
    ],
    [
      'a CommonJS project',
      { ...poet, 'package.json': '{ "type": "commonjs" }' },
      /agents\/poet\.ts: cannot be imported, because the project is CommonJS: write "type": "module" in .*package\.json/,
    ],
    [
      'a tool that does not exist',
      {
        'agents/a.ts': agent('a'),
        'prompts/a.ts': prompt('a', "tools: ['lok_up']"),
        'tools/look_up.ts': `import { defineTool } from '@skein/runtime'
        export default defineTool({ name: 'look_up', description: 'Looks.', risk: 'read_only', execute: () => 1 })`,
      },
      /lok_up.*look_up/,
    ],
    [
      'a child that does not exist',
      {
        'agents/a.ts': agent('a'),
        'prompts/a.ts': prompt('a', "tools: [{ name: 'helper', subagent: true }]"),
      },
      /helper/,
    ],
    [
      'a calendar line that never comes',
      {
        'agents/a.ts': agent('a'),
        'prompts/a.ts': prompt('a'),
        'tools/remind.ts': `import { defineTool } from '@skein/runtime'
        export default defineTool({ name: 'remind', description: 'Reminds.', risk: 'read_only',
          execute: (state) => state.scheduleEffect('mail', {}, { cron: '0 0 30 2 *' }) })`,
      },
      'tools/remind.ts: The calendar line "0 0 30 2 *" cannot be used: the day of month never comes in these months.',
    ],
  ])('%s', async (_, files, expected) => {
    const { code, stdout } = await skein(['check', '.'], { cwd: folderWith(files) })
    if (typeof expected === 'string') expect(stdout).toContain(expected)
    else expect(stdout).toMatch(expected)
    expect(code).toBe(1)
  })

  test('a key in the environment or in .env is enough; --without-keys does not ask', async () => {
    const cwd = folderWith(poet)
    const env = { ANTHROPIC_API_KEY: 'canary-1' }
    expect((await skein(['check', '.'], { cwd, env })).code).toBe(0)
    expect((await skein(['check', '.', '--without-keys'], { cwd })).code).toBe(0)
    writeFileSync(join(cwd, '.env'), 'OTHER=1\n')
    const missing = await skein(['check', '.'], { cwd })
    expect(missing.stdout).toMatch(/looked in the environment and \S+\.env\n/)
    writeFileSync(join(cwd, '.env'), 'ANTHROPIC_API_KEY="canary-2"\n')
    const found = await skein(['check', '.'], { cwd })
    expect(found).toMatchObject({ code: 0 })
    const doctor = await skein(['doctor'], { cwd })
    expect(doctor.stdout).toMatch(/^ok +keys +ANTHROPIC_API_KEY$/m)
    expect(doctor.stdout).toMatch(/^ok +models +anthropic claude-x$/m)
    expect(JSON.stringify([missing, found, doctor])).not.toContain('canary')
  })

  test('dev says it as a banner and serves all the same; doctor agrees', async () => {
    const cwd = folderWith(poet)
    const { running } = await startDev(['.'], { cwd })
    await running.until('stderr', /will fail: agent "poet": .*ANTHROPIC_API_KEY is not set/)
    const doctor = await skein(['doctor', '--json'], { cwd })
    expect(doctor.code).toBe(1)
    const { findings } = JSON.parse(doctor.stdout) as { findings: { name: string; ok: boolean }[] }
    expect(findings.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(['models'])
  })
})

describe('a page may talk to dev', { timeout }, () => {
  test('pages of the named origins of this machine, and no others', async () => {
    const cwd = tempFolder()
    const { url } = await startDev(['--origin', 'http://localhost:5173'], { cwd })
    const ask = (origin: string): Promise<Response> =>
      fetch(`${url}/agents`, { headers: { origin } })
    const allowed = await ask('http://localhost:5173')
    expect(allowed.status).toBe(200)
    expect(allowed.headers.get('access-control-allow-origin')).toBe('http://localhost:5173')
    expect((await ask('http://localhost:5174')).status).toBe(403)
    expect((await ask('https://elsewhere.example')).status).toBe(403)
    const refused = await skein(['dev', '--origin', 'https://elsewhere.example'], {
      cwd: tempFolder(),
    })
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toContain('--origin takes pages of this machine')
  })

  test('skein.config names the folder, the port and the origins of dev', async () => {
    const cwd = folderWith({ 'mine/agents/a.ts': agent('a'), 'mine/prompts/a.ts': prompt('a') })
    const config = {
      agents: 'mine',
      port: 0,
      origins: ['http://127.0.0.1:3000', 'https://app.example'],
    }
    writeFileSync(join(cwd, 'skein.config.json'), JSON.stringify(config))
    const running = new Running(['dev'], { cwd })
    await running.until('stdout', /^secrets /m)
    expect(running.stdout).toContain('agents  a (scripted model')
    const url = /http:\/\/\S+/.exec(running.stdout)![0]
    const status = async (origin: string): Promise<number> =>
      (await fetch(`${url}/agents`, { headers: { origin } })).status
    expect(await status('http://127.0.0.1:3000')).toBe(200)
    expect(await status('https://app.example')).toBe(403)
  })
})

describe('limits', { timeout }, () => {
  test('skein.config limits what dev spends', async () => {
    const cwd = folderWith({ 'agents/a.ts': agent('a'), 'prompts/a.ts': prompt('a') })
    const rule = { per: 'tenant', periodMs: 7 * 24 * 3_600_000, maxInferences: 1 }
    const config = { port: 0, spending: [rule], limits: { maxSteps: 3 } }
    writeFileSync(join(cwd, 'skein.config.json'), JSON.stringify(config))
    const running = new Running(['dev'], { cwd })
    await running.until('stdout', /^secrets /m)
    expect(await skein(['run', 'a', 'Hello'], { cwd })).toMatchObject({ code: 0 })
    const refused = await skein(['run', 'a', 'Again'], { cwd })
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain('The tenant "default" may use 1 requests of models until')
    const { stdout } = await skein(['limits', '--json'], { cwd })
    expect(JSON.parse(stdout)).toMatchObject({ spending: [{ max: { inferences: 1 }, refused: 1 }] })
  })

  test('a rule that cannot hold stops dev with the reason', async () => {
    const cwd = folderWith({ 'agents/a.ts': agent('a'), 'prompts/a.ts': prompt('a') })
    const config = { port: 0, spending: [{ per: 'tenant', periodMs: 1 }] }
    writeFileSync(join(cwd, 'skein.config.json'), JSON.stringify(config))
    const { code, stderr } = await skein(['dev'], { cwd })
    expect(code).toBe(1)
    expect(stderr).toMatch(/The spending rule .* cannot be used/)
  })
})

describe('doctor', { timeout }, () => {
  test('an engine that does not answer, an unknown store and a wrong setting are problems', async () => {
    const cwd = tempFolder()
    const config = {
      engine: 'restate',
      restateIngress: 'http://127.0.0.1:1',
      store: 'mysql:x',
      prot: 1,
    }
    writeFileSync(join(cwd, 'skein.config.json'), JSON.stringify(config))
    const { code, stdout } = await skein(['doctor'], { cwd })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^PROBLEM +config +prot: is not a setting\. Did you mean port\?$/m)
    expect(stdout).toMatch(/^PROBLEM +store +the setting is neither/m)
    expect(stdout).toMatch(/^PROBLEM +engine +http:\/\/127\.0\.0\.1:1 does not answer$/m)
    expect(stdout).toMatch(/^ok +packages +skein \d/m)
  })

  test('says how much space is free for a store that is there', async () => {
    const { stdout } = await skein(['doctor'], { cwd: tempFolder() })
    expect(stdout).toMatch(/^ok +store .*created when needed.*, \d+\.\d GB free$/m)
  })
})
