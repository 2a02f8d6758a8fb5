import { toolFrom, type ToolDefinition } from '@skein/runtime'
import { pay } from '../bank-client.ts'
import { paymentArgs, type PaymentArgs } from '../payment-args.ts'

/** Undoes `charge`. No model sees this tool. */
const cancelCharge: ToolDefinition = toolFrom(
  {
    name: 'cancel_charge',
    description: 'Cancels a charge.',
    parameters: paymentArgs,
    async run(args: PaymentArgs) {
      await pay({ type: 'cancel_charge', ...args })
      return `Cancelled ${args.amount} for ${args.order}.`
    },
  },
  { risk: 'write_low_risk' },
)

export default cancelCharge
