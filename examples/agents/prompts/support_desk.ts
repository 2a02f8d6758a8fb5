import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { exampleModel } from '../example-model.ts'
import { supportScript } from '../scripts/support.ts'

const supportDesk: PromptDefinition = definePrompt({
  name: 'support_desk',
  prompt:
    'You are the support desk of a small shop. Look orders up before you speak about them. ' +
    'Hand refunds over to the refunds desk. Have labels written by the asset subagent. Be brief.',
  model: exampleModel('support_desk_script', supportScript),
  tools: [
    'look_up_order',
    'refunds',
    { name: 'asset_subagent', initUserMessageProperty: 'message' },
  ],
})

export default supportDesk
