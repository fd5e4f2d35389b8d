"""Which class plays each role when a model does."""

from coreeval.agents.composer import LLMComposer
from coreeval.agents.extractor import LLMExtractor
from coreeval.agents.fact_judge import LLMFactJudge
from coreeval.agents.label_judge import LLMLabelJudge
from coreeval.agents.llm_role import LLMRole
from coreeval.agents.replacer import LLMReplacer
from coreeval.agents.rewriter import LLMRewriter
from coreeval.schema import RoleName

LLM_ROLES: dict[RoleName, type[LLMRole]] = {
    "extractor": LLMExtractor,
    "replacer": LLMReplacer,
    "rewriter": LLMRewriter,
    "composer": LLMComposer,
    "fact_judge": LLMFactJudge,
    "label_judge": LLMLabelJudge,
}
