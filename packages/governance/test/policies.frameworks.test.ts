import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cedarPolicy, type Cedar } from '../src/adapters/cedar.ts'
import { opaPolicy, type LoadedOpaPolicy } from '../src/adapters/opa.ts'
import type { Action, Policy } from '../src/index.ts'
import { action } from './approval-setup.ts'
import { identity, openBank } from './bank.ts'
import { opaModule } from './opa-module.ts'
import { peersOf } from '../../../scripts/peers.ts'

const rules = `
  permit(principal, action == Action::"note", resource);

  @review("Reversals need two people.")
  @quorum("2")
  permit(principal, action == Action::"reverse_wire", resource == Task::"wire-reversal")
    when { context.risk == "write_high_risk" };

  forbid(principal == Agent::"mallory", action, resource);
  forbid(principal, action, resource) when { context has args && context.args has amount && context.args.amount > 1000 };
`

// The real engines, at the versions that peers/frameworks pins.
const peers = peersOf('frameworks')
const cedar = peers.isInstalled
  ? await peers.load<Cedar>('@cedar-policy/cedar-wasm/nodejs')
  : (undefined as never)
const { loadPolicy } = await (peers.isInstalled
  ? peers.load<Opa>('@open-policy-agent/opa-wasm')
  : ({} as Opa))

interface Opa {
  loadPolicy(wasm: BufferSource): Promise<LoadedOpaPolicy>
}

describe.runIf(peers.isInstalled)('Cedar, the real engine', () => {
  const decide = (changes: Partial<Action>) =>
    cedarPolicy({ cedar, policies: rules }).decide(action(changes))

  test('permits, sends to people, forbids, and denies what nobody permits', async () => {
    expect(await decide({ tool: 'note', args: { text: 'x' } })).toEqual({ effect: 'allow' })
    expect(await decide({})).toMatchObject({
      effect: 'review',
      quorum: 2,
      reasons: [{ code: 'APPROVAL_REQUIRED', detail: 'Reversals need two people.' }],
    })
    expect(await decide({ args: { amount: 1001 } })).toMatchObject({ effect: 'deny' })
    expect(await decide({ identity: { ...identity, agent_id: 'mallory' } })).toMatchObject({
      effect: 'deny',
      reasons: [{ code: 'POLICY_BLOCKED', detail: 'forbidden by policy2' }],
    })
    expect(await decide({ tool: 'unknown' })).toMatchObject({
      reasons: [{ detail: 'no policy permits it' }],
    })
    expect(await decide({ task: 'other' })).toMatchObject({ effect: 'deny' })
  })

  test('a rule that cannot be evaluated blocks, also where another one permits', () => {
    // Cedar skips a forbid that fails; a fraction cannot be compared with a number.
    expect(() => decide({ tool: 'note', args: { amount: 1000.5 } })).toThrow(
      'could not be evaluated',
    )
  })

  test('null is left out, and entities are asked for', async () => {
    expect(await decide({ tool: 'note', args: { text: null, list: [1, null] } })).toEqual({
      effect: 'allow',
    })
    const grouped = cedarPolicy({
      cedar,
      policies: 'permit(principal in Team::"ops", action, resource);',
      entities: ({ identity: { agent_id } }) => [
        { uid: { type: 'Agent', id: agent_id }, attrs: {}, parents: [{ type: 'Team', id: 'ops' }] },
      ],
    })
    expect(await grouped.decide(action())).toEqual({ effect: 'allow' })
  })

  const policy = fc.record({
    effect: fc.constantFrom('permit', 'permit', 'permit', 'forbid'),
    tool: fc.nat({ max: 11 }),
    review: fc.option(fc.constantFrom('a', 'b', 'c'), { nil: undefined }),
    quorum: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
  })

  test('any number of policies with any annotations decide as they are written', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(policy, { maxLength: 30 }), async (written) => {
        const texts = written.map(({ effect, tool, review, quorum }) =>
          [
            review === undefined ? '' : `@review("${review}")`,
            quorum === undefined ? '' : `@quorum("${quorum}")`,
            `${effect}(principal, action == Action::"t${tool}", resource);`,
          ].join(' '),
        )
        const made = cedarPolicy({ cedar, policies: texts.join('\n') })
        for (let tool = 0; tool <= 11; tool++) {
          const own = written.filter((one) => one.tool === tool)
          const permits = own.filter(({ effect }) => effect === 'permit')
          const isForbidden = own.length > permits.length
          const asked = permits.filter(({ review }) => review !== undefined)
          const expected =
            isForbidden || permits.length === 0
              ? { effect: 'deny' }
              : asked.length < permits.length
                ? { effect: 'allow' }
                : { effect: 'review', quorum: Math.max(...asked.map(({ quorum = 1 }) => quorum)) }
          const decision = await made.decide(action({ tool: `t${tool}` }))
          expect(decision).toMatchObject(expected)
        }
      }),
      { numRuns: process.env['SKEIN_DEEP'] ? 500 : 40 },
    )
  })

  test('a policy that Cedar names and nobody knows denies; templates are refused', () => {
    const renaming: Cedar = {
      ...cedar,
      preparsePolicySet: (id, { staticPolicies }) =>
        cedar.preparsePolicySet(id, {
          staticPolicies: Object.fromEntries(
            Object.entries(staticPolicies).map(([name, text]) => [`x${name}`, text]),
          ),
        }),
    }
    const policies = 'permit(principal, action, resource);'
    const renamed = cedarPolicy({ cedar: renaming, policies, id: 'renamed' })
    expect(() => renamed.decide(action())).toThrow('not given to it')
    const template = 'permit(principal == ?principal, action, resource);'
    expect(() => cedarPolicy({ cedar, policies: template })).toThrow('templates')
  })

  test('UAICP-23 rules see arguments, risk, identity, depth and rollback; a denial names the tool', async () => {
    const policies = `permit(principal == Agent::"agent-1", action == Action::"reverse_wire", resource == Task::"wire-reversal")
      when { context.args.wire == "W-1" && context.risk == "write_high_risk" && context.depth == 0
        && context.identity.user_id == "uma" && context.rollback.target == "reinstate_wire" };`
    const made = cedarPolicy({ cedar, policies, id: 'all' })
    expect(made.decide(action())).toEqual({ effect: 'allow' })
    const { identity: who } = action()
    for (const other of [
      { args: { wire: 'W-2' } },
      { risk: 'write_low_risk' as const },
      { depth: 1 },
      { identity: { ...who, user_id: 'pat' } },
      { identity: { ...who, agent_id: 'agent-2' } },
      { rollback: { type: 'tool_call', target: 'other', payload: {} } },
      { tool: 'other' },
      { task: 'other' },
    ]) {
      expect(made.decide(action(other))).toMatchObject({
        effect: 'deny',
        reasons: [{ code: 'POLICY_BLOCKED', subject: other.tool ?? 'reverse_wire' }],
      })
    }
    const plain = cedarPolicy({ cedar, policies })
    expect([plain.id, plain.mode]).toEqual(['cedar', 'enforce'])
    expect(plain.hash).not.toBe(made.hash)
    const trial = cedarPolicy({ cedar, policies, id: 'x', mode: 'shadow' })
    expect([trial.id, trial.mode]).toEqual(['x', 'shadow'])
  })

  test('UAICP-23 an engine that fails or does not answer allows nothing', () => {
    const policies = 'permit(principal, action, resource);'
    const failure = {
      type: 'failure',
      errors: [{ message: 'broken' }, { message: 'down' }],
    } as const
    const failing = cedarPolicy({
      cedar: { ...cedar, statefulIsAuthorized: () => failure },
      policies,
      id: 'failing',
    })
    expect(() => failing.decide(action())).toThrow('broken; down')
    const mute = { ...cedar, statefulIsAuthorized: () => ({ type: 'success' }) as const }
    const silent = cedarPolicy({ cedar: mute, policies, id: 'silent' })
    expect(silent.decide(action())).toMatchObject({ effect: 'deny' })
    const refusing = { ...cedar, preparsePolicySet: () => failure }
    expect(() => cedarPolicy({ cedar: refusing, policies })).toThrow('Cedar policies: broken; down')
  })

  test('text that is not Cedar is refused when the policy is made; other text is another hash', () => {
    expect(() => cedarPolicy({ cedar, policies: 'permit(' })).toThrow('Cedar policies')
    expect(cedarPolicy({ cedar, policies: `${rules} ` }).hash).not.toBe(
      cedarPolicy({ cedar, policies: rules }).hash,
    )
  })
})

describe.runIf(peers.isInstalled)('OPA, the real SDK', () => {
  test('decides by what a wasm policy answers', async () => {
    const policy = opaPolicy({
      policy: await loadPolicy(opaModule),
      version: '1',
      entrypoint: 'uaicp/decision',
    })
    expect(policy.decide(action())).toEqual({ effect: 'allow' })
    expect(policy.decide(action({ args: { wire: 'W-1?' } }))).toEqual({ effect: 'review' })
    expect(policy.decide(action({ args: { wire: 'W-1!' } }))).toEqual({ effect: 'deny' })
  })

  test('answers: booleans, none, and what is no decision', () => {
    const answering = (results: unknown): Policy =>
      opaPolicy({ policy: { evaluate: () => results }, version: '1' })
    expect(answering([{ result: true }]).decide(action())).toEqual({ effect: 'allow' })
    expect(answering([{ result: false }]).decide(action())).toEqual({ effect: 'deny' })
    expect(answering([]).decide(action())).toBeUndefined()
    for (const results of [
      null,
      undefined,
      [null],
      [{}],
      [{ result: true }, { result: false }],
      [{ result: true }, { result: true }],
      [{ result: 'allow' }],
      [{ result: null }],
      [{ result: { effect: 'yes' } }],
      [{ result: true }, { result: { effect: 'allow' } }]
        .slice(1)
        .concat([{ result: true } as never]),
    ])
      expect(() => answering(results).decide(action())).toThrow(TypeError)
  })

  test('UAICP-23 the entry point, the id and the mode are those that were given', () => {
    const asked: unknown[] = []
    const policy = { evaluate: (...given: readonly unknown[]) => (asked.push(given), []) }
    const plain = opaPolicy({ policy, version: '1' })
    const named = opaPolicy({ policy, version: '1', entrypoint: 'a/b', id: 'x', mode: 'shadow' })
    const subject = action()
    plain.decide(subject)
    named.decide(subject)
    expect(asked).toEqual([
      [subject, 0],
      [subject, 'a/b'],
    ])
    expect([plain, named].map(({ id, mode }) => [id, mode])).toEqual([
      ['opa', 'enforce'],
      ['x', 'shadow'],
    ])
    expect(opaPolicy({ policy, version: '1', id: 'x' }).hash).not.toBe(plain.hash)
    expect(opaPolicy({ policy, version: '1', entrypoint: 0 }).hash).toBe(plain.hash)
  })

  test('versions and entry points are part of the hash', async () => {
    const loaded = { evaluate: () => [] }
    const hashes = [
      opaPolicy({ policy: loaded, version: '1' }),
      opaPolicy({ policy: loaded, version: '2' }),
      opaPolicy({ policy: loaded, version: '1', entrypoint: 1 }),
    ]
    expect(new Set(hashes.map(({ hash }) => hash)).size).toBe(3)
  })
})

describe.runIf(peers.isInstalled)('both in a governor', () => {
  const policies: Record<string, () => Promise<Policy>> = {
    Cedar: async () =>
      cedarPolicy({
        cedar,
        policies:
          'permit(principal, action, resource); forbid(principal, action, resource) when { context.args.text like "*!*" };',
      }),
    OPA: async () => opaPolicy({ policy: await loadPolicy(opaModule), version: '1' }),
  }
  for (const [name, make] of Object.entries(policies)) {
    test(`UAICP-23 ${name} allows one low-risk write and blocks another`, async () => {
      const bank = await openBank({ policy: await make() })
      const note = bank.tools.find((tool) => tool.name === 'note')!
      await bank.governor.run(bank.task, { identity, input: null }, async (run) => {
        await run.call(note, { text: 'fine' } as never)
        await expect(run.call(note, { text: 'no!' } as never)).rejects.toMatchObject({
          code: 'POLICY_BLOCKED',
        })
        return ''
      })
      expect(bank.effects).toEqual(['note fine', 'note void'])
    })
  }
})
