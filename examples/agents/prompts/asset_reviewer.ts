import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { exampleModel } from '../example-model.ts'
import { reviewerScript } from '../scripts/asset-pair.ts'

const assetReviewer: PromptDefinition = definePrompt({
  name: 'asset_reviewer',
  prompt:
    'You review labels. A good one names the thing and has at most ten words. ' +
    'Say in one sentence what to fix, or accept it with approve_asset.',
  model: exampleModel('asset_reviewer_script', reviewerScript),
  tools: ['approve_asset'],
})

export default assetReviewer
