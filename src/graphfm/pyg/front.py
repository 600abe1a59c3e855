"""What the rest of the package uses of this one."""

from torch_geometric import __version__ as VERSION

from graphfm.pyg.certificate import certify as certify
from graphfm.pyg.certificate import check_kind as check_kind
from graphfm.pyg.model import OwnModel as OwnModel
from graphfm.pyg.model import own_model as own_model

__all__ = ["VERSION", "OwnModel", "certify", "check_kind", "own_model"]
