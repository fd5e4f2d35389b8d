"""Every other provider that LangChain has a package for."""
