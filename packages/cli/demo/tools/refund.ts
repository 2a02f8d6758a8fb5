import { toolFrom, type ToolDefinition } from '@skein/runtime'
import { pay, paymentsOf } from '../bank-client.ts'
import { paymentArgs, type PaymentArgs } from '../payment-args.ts'

/** Pays to the card. The bank can be asked later whether it has paid: `probe` does that after a crash. */
const refund: ToolDefinition = toolFrom(
  {
    name: 'refund',
    description: 'Pays the money for an order back to the card.',
    parameters: paymentArgs,
    async run(args: PaymentArgs) {
      await pay({ type: 'refund', ...args })
      return `Refunded ${args.amount} for ${args.order}.`
    },
  },
  {
    risk: 'write_high_risk',
    rollback: 'impossible',
    probe: async (args) =>
      (await paymentsOf((args as PaymentArgs).order)) > 0 ? 'applied' : 'absent',
  },
)

export default refund
