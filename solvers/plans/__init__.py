# TEMPORARY STUB
from dataclasses import dataclass
import numpy as np, scipy.sparse as sp
from scipy.optimize import linprog
from solvers.plans.costs import CellCosts, MatrixCosts
from solvers.plans.problem import PlanLimits, PlanProblem
class PlanError(Exception): pass
@dataclass
class Plan:
    rows: object; columns: object; flows: object; cost: float; lower_bound: float; blocks: int; seconds: float; ended_early: bool
def solve_plan(problem, *, time_limit=None, gap=1e-6, margin=1e-7, seed=0, progress=None):
    p=problem.masses; n=len(p); idx=np.arange(n)
    D=problem.costs.block(idx, idx)
    X,Y=np.meshgrid(idx,idx,indexing='ij'); X=X.ravel(); Y=Y.ravel()
    ok=np.ones(n*n,bool)
    if problem.strata is not None: ok&=problem.strata[X]==problem.strata[Y]
    if problem.forbidden is not None: ok[problem.forbidden[0]*n+problem.forbidden[1]]=False
    X=X[ok];Y=Y[ok];m=len(X)
    Aeq=[sp.csr_matrix((np.ones(m),(X,np.arange(m))),(n,m))]; beq=[p]
    if problem.targets is not None:
        Aeq.append(sp.csr_matrix((np.ones(m),(Y,np.arange(m))),(n,m))); beq.append(problem.targets)
    L=problem.limits; A=[]
    for k in range(len(L.values)):
        t=L.values[k]
        if problem.strata is not None:
            for s in np.unique(problem.strata):
                pass
        if np.isfinite(L.upper[k]): A.append(sp.csr_matrix(((t[X]-L.upper[k]*(1-margin)),(Y,np.arange(m))),(n,m)))
        if L.lower[k]>0 and problem.strata is not None:
            some=np.array([t[problem.strata==g].max()>0 for g in range(problem.strata.max()+1)])[problem.strata[Y]]
            A.append(sp.csr_matrix(((L.lower[k]*(1+margin)-t[X])*some,(Y,np.arange(m))),(n,m)))
        elif L.lower[k]>0: A.append(sp.csr_matrix(((L.lower[k]*(1+margin)-t[X]),(Y,np.arange(m))),(n,m)))
    if np.isfinite(L.ratio):
        for i in range(len(L.values)):
            for j in range(len(L.values)):
                if i!=j and L.groups[i]==L.groups[j]:
                    A.append(sp.csr_matrix(((L.values[i][X]-L.ratio*(1-margin)*L.values[j][X]),(Y,np.arange(m))),(n,m)))
    lo=np.zeros(m)
    if problem.stay is not None:
        lo[X==Y]=(problem.stay*p)[X[X==Y]]
    r=linprog(D[X,Y],A_ub=sp.vstack(A) if A else None,b_ub=np.zeros(n*len(A)) if A else None,A_eq=sp.vstack(Aeq),b_eq=np.concatenate(beq),bounds=np.c_[lo,np.full(m,np.inf)])
    if r.status!=0: raise PlanError(r.message)
    f=r.x; k=f>1e-13
    return Plan(X[k],Y[k],f[k],float(r.fun),float(r.fun)-1e-6,1,0.0,False)
def integer_plan(rows,columns,flows,row_units,column_units,unit=1<<40):
    N=sum(row_units); v=[int(round(float(f)*N*unit)) for f in flows]
    n=len(row_units)
    if column_units is None:
        raise NotImplementedError
    # max spanning forest by Kruskal
    parent=list(range(2*n))
    def find(a):
        while parent[a]!=a:
            parent[a]=parent[parent[a]]; a=parent[a]
        return a
    tree=[]
    for e in sorted(range(len(v)),key=lambda e:-v[e]):
        a,b=find(int(rows[e])),find(n+int(columns[e]))
        if a!=b: parent[a]=b; tree.append(e)
    res=[c*unit for c in row_units]+[c*unit for c in column_units]
    for e,(x,y) in enumerate(zip(rows,columns)): res[int(x)]-=v[e]; res[n+int(y)]-=v[e]
    adj={}
    for e in tree:
        adj.setdefault(int(rows[e]),set()).add(e); adj.setdefault(n+int(columns[e]),set()).add(e)
    leaves=[a for a in adj if len(adj[a])==1]
    while leaves:
        a=leaves.pop()
        if not adj[a]: continue
        (e,)=adj[a]; x,y=int(rows[e]),n+int(columns[e]); b=y if a==x else x
        v[e]+=res[a]; res[b]-=res[a]; res[a]=0
        adj[a].discard(e); adj[b].discard(e)
        if len(adj[b])==1: leaves.append(b)
    assert not any(res), [r for r in res if r][:3]
    k=[i for i in range(len(v)) if v[i]>0]
    assert all(w>=0 for w in v)
    return np.asarray(rows)[k],np.asarray(columns)[k],[v[i] for i in k]
