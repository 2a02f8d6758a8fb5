import { describe, expectTypeOf, test } from 'vitest'
import { tool } from '@skein/ai'
import { z } from 'zod'
import { governed, type Evidence, type GovernedTool, type Run } from '../index.ts'

const plain = {
  name: 'ledger',
  description: 'Balance of an account.',
  parameters: { type: 'object' },
  run: async (args: { account: string }) => ({ balance: args.account.length }),
}

describe('governed', () => {
  test('infers arguments and result of a plain tool', () => {
    const ledger = governed(plain, { risk: 'read_only' })
    expectTypeOf(ledger).toEqualTypeOf<GovernedTool<{ account: string }, { balance: number }>>()
  })

  test('infers them from a schema, through tool()', () => {
    const refund = governed(
      tool({
        name: 'refund',
        description: '',
        parameters: z.object({ order: z.string() }),
        run: ({ order }) => ({ ref: order }),
      }),
      {
        risk: 'write_high_risk',
        rollback: (args) => {
          expectTypeOf(args).toEqualTypeOf<{ order: string }>()
          return { type: 'tool_call', target: 'charge', payload: { order: args.order } }
        },
        evidence: (result) => {
          expectTypeOf(result).toEqualTypeOf<{ ref: string }>()
          return { type: 'tool_result', payload: result.ref }
        },
      },
    )
    expectTypeOf(refund).toEqualTypeOf<GovernedTool<{ order: string }, { ref: string }>>()
  })

  test('a call gives the tool’s result and takes its arguments', async () => {
    const run = {} as Run
    const ledger = governed(plain, { risk: 'read_only' })
    const call = run.call(ledger, { account: 'a' })
    expectTypeOf(call).resolves.toHaveProperty('result').toEqualTypeOf<{ balance: number }>()
    expectTypeOf(call).resolves.toHaveProperty('evidence').toEqualTypeOf<Evidence>()
    // @ts-expect-error an argument of another name
    void run.call(ledger, { acount: 'a' })
    // @ts-expect-error the tier is mandatory
    governed(plain, {})
  })
})
